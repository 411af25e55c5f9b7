# bash completion of fslab. `fslab complete` prints one candidate per line: value, tab, description.
_fslab() {
    # bash splits words at = and :, and replaces only the part after them, which is $2.
    local i value files words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i > 0)) && [[ ${COMP_WORDS[i]} == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done
    local kept=${words[-1]}
    [[ ${COMP_WORDS[COMP_CWORD]} == *[=:] ]] || kept=${kept%"${COMP_WORDS[COMP_CWORD]}"}
    words[-1]=$kept$2
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        [[ ! -e $value ]] || files=yes
        COMPREPLY+=("${value#"$kept"}")
    done < <(command fslab complete -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace
    fi
    # readline quotes special characters of file names, and the = of settings.
    [[ -z $files ]] || compopt -o filenames
}
complete -o nosort -F _fslab fslab
