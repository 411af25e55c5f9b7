#compdef fslab
# zsh completion of fslab. `fslab complete` prints one candidate per line: value, tab, description.
_fslab() {
    local -a candidates parts
    local line value
    candidates=("${(@f)$(command fslab complete -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" \
        2>/dev/null)}")
    for line in "${candidates[@]}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        if [[ $value == *[=/] ]]; then
            parts+=("${value//:/\\:}:${line#*$'\t'}")
        fi
    done
    candidates=("${(@)candidates:#*[=/]$'\t'*}")
    candidates=("${(@)candidates//:/\\:}")
    candidates=("${(@)${(@)candidates/$'\t'/:}%:}")
    parts=("${(@)parts%:}")
    [[ -n $candidates ]] && _describe -V fslab candidates
    [[ -n $parts ]] && _describe -V fslab parts -S ''
}
if [[ $funcstack[1] == _fslab ]]; then
    _fslab "$@"
else
    compdef _fslab fslab
fi
