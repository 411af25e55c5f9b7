# fish completion of fslab. `fslab complete` prints one candidate per line: value, tab, description.
complete --command fslab --no-files --keep-order --arguments "(command fslab complete -- \
(commandline --current-process --tokenize --cut-at-cursor) \
(commandline --current-token --cut-at-cursor) 2>/dev/null)"
