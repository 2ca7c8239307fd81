#!/bin/sh
# run_commands.sh SHARDPLAN FILE...: runs every indented line "./run COMMAND ..." of the documents with that program, from the
# tree's root, and fails if one of them fails or a document has none.
program=$1
shift
failed=0
for file in "$@"; do
  commands=$(sed -n 's|^    \./run ||p' "$file")
  [ -n "$commands" ] || { echo "$file: no commands"; failed=1; }
  printf '%s\n' "$commands" | while IFS= read -r line; do
    eval "\"$program\" $line" >/dev/null 2>/tmp/docs.$$ || { echo "$file: ./run $line"; cat /tmp/docs.$$; exit 1; }
  done || failed=1
done
rm -f /tmp/docs.$$
exit $failed
