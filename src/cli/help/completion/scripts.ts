export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The completion scripts. Each passes the line up to the cursor to svc, which knows the commands and their values. */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# bash completion of svc. For this shell: source <(svc completion bash)
# For every shell: svc completion bash > ~/.local/share/bash-completion/completions/svc
_svc() {
  local line cur="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = ":files" ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
      return
    fi
    COMPREPLY+=("$line")
  done < <("\${COMP_WORDS[0]}" __complete bash "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _svc svc
`,
  zsh: `#compdef svc
# zsh completion of svc. For this shell: source <(svc completion zsh)
# For every shell: svc completion zsh > a file _svc in a folder of $fpath
_svc() {
  local line value
  local -a described
  for line in "\${(@f)$(svc __complete zsh "\${BUFFER[1,CURSOR]}" 2>/dev/null)}"; do
    if [[ $line == ":files" ]]; then
      [[ $PREFIX == --*=* ]] && compset -P '*='
      _files
      return
    fi
    [[ -z $line ]] && continue
    value=\${line%%$'\\t'*}
    line=\${line#*$'\\t'}
    # Without a description, zsh would show an empty one behind the value.
    described+=("\${value//:/\\\\:}\${line:+:$line}")
  done
  _describe -V svc described
}
if [[ $funcstack[1] == _svc ]]; then
  _svc "$@"
else
  compdef _svc svc
fi
`,
  fish: `# fish completion of svc. For this shell: svc completion fish | source
# For every shell: svc completion fish > ~/.config/fish/completions/svc.fish
function __svc_complete
    set -l lines (svc __complete fish (commandline -cp) 2>/dev/null)
    if test "$lines" = ":files"
        set -l flag (string match -r -- '^--[\\w-]+=' (commandline -ct))
        __fish_complete_path (string replace -- "$flag" '' (commandline -ct)) | string replace -r -- '^' "$flag"
    else if set -q lines[1]
        printf '%s\\n' $lines
    end
end
complete -c svc -f -a '(__svc_complete)'
`,
}
