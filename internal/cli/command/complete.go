package command

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// A Source returns names from the working directory for completion. It returns quickly, with
// no candidates if it cannot.
type Source interface {
	Candidates(what flag.Completion) []string
}

// Complete returns the candidates for the last of words, which are the words after the
// program's name. ok is false if the shell should complete file names.
func (t *Table) Complete(words []string, from Source) (out []string, ok bool) {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	_, before = t.Global().Leading(before)
	cmd, rest, found := t.Find(before)
	if !found {
		if len(before) > 0 {
			return nil, true
		}
		return matching(t.names(""), last), true
	}
	flags := t.Flags(cmd)
	if cmd.Name == "run" && len(rest) > 0 { // complete the command that "run" runs
		if inner, more, ok := t.Find(slices.DeleteFunc(slices.Clone(rest), func(w string) bool { return strings.HasPrefix(w, "-") })); ok {
			cmd, rest = inner, more
			flags = append(t.Flags(inner), flags...)
		}
	}
	if _, value, has, isFlag := flag.Split(last); isFlag && has {
		if f := flags.Find(last); f != nil {
			list, ok := candidatesOf(f, value, from)
			head := last[:len(last)-len(value)]
			for i := range list {
				list[i] = head + list[i]
			}
			return list, ok
		}
		return nil, true
	}
	if len(rest) > 0 {
		if _, _, has, isFlag := flag.Split(rest[len(rest)-1]); isFlag && !has {
			if f := flags.Find(rest[len(rest)-1]); f != nil && !f.Switch() {
				return candidatesOf(f, last, from)
			}
		}
	}
	if strings.HasPrefix(last, "-") {
		return matching(flags.Words(), last), true
	}
	out = matching(t.names(cmd.Name+" "), last)
	if len(cmd.Args) > 0 {
		given := 0
		for _, w := range rest {
			if !strings.HasPrefix(w, "-") {
				given++
			}
		}
		arg := &cmd.Args[min(given, len(cmd.Args)-1)]
		more, ok := candidates(arg.Complete, arg.Choices, last, from)
		return append(out, more...), ok || len(out) > 0
	}
	return out, true
}

// names returns the next word of each command whose name begins with prefix.
func (t *Table) names(prefix string) []string {
	var out []string
	for i := range t.Commands {
		c := &t.Commands[i]
		if rest, ok := strings.CutPrefix(c.Name, prefix); ok && !c.Hidden {
			word, _, _ := strings.Cut(rest, " ")
			out = append(out, word)
		}
	}
	return out
}

// candidatesOf returns the candidates for the value of a flag.
func candidatesOf(f *flag.Flag, value string, from Source) ([]string, bool) {
	if f.Switch() {
		return matching([]string{"false", "true"}, value), true
	}
	return candidates(f.Complete, f.Choices, value, from)
}

func candidates(what flag.Completion, choices []string, value string, from Source) ([]string, bool) {
	switch {
	case len(choices) > 0:
		return matching(choices, value), true
	case what == flag.Files || what == flag.Folders:
		return nil, false
	case what == flag.Nothing:
		return nil, true
	}
	return matching(from.Candidates(what), value), true
}

// matching returns the words that begin with text, sorted and without duplicates.
func matching(words []string, text string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, text) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Shells returns the shells that have completion.
func Shells() []string { return []string{"bash", "fish", "zsh"} }

// Script returns the completion script for a shell, or "" if the shell is not supported. The
// script calls the hidden command __complete for candidates.
func (t *Table) Script(shell string) string {
	text := map[string]string{
		"bash": `# bash completion for PROGRAM: source it, or put it into bash-completion's directory.
_PROGRAM() {
	local line="${COMP_LINE:0:COMP_POINT}" out
	local -a words
	read -ra words <<<"$line"
	[[ "$line" == *" " ]] && words+=("")
	out=$(PROGRAM __complete -- "${words[@]:1}" 2>/dev/null)
	local cur="${COMP_WORDS[COMP_CWORD]}" whole="${words[-1]}"
	if [[ "$out" == ":files" ]]; then
		COMPREPLY=($(compgen -f -- "${cur#=}"))
		compopt -o filenames 2>/dev/null
		return
	fi
	local IFS=$'\n' x
	COMPREPLY=()
	for x in $out; do
		COMPREPLY+=("${x#"${whole%"$cur"}"}")
	done
	[[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -F _PROGRAM PROGRAM
`,
		"zsh": `#compdef PROGRAM
# zsh completion for PROGRAM: put it into a directory of $fpath as _PROGRAM, or source it.
_PROGRAM() {
	local -a out
	out=("${(@f)$(PROGRAM __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ "$out[1]" == ":files" ]]; then
		compset -P '*='
		_files
		return
	fi
	out=(${out:#})
	compadd -S '' -- ${(M)out:#*=}
	compadd -- ${out:#*=}
}
if [[ "$funcstack[1]" == "_PROGRAM" ]]; then
	_PROGRAM "$@"
else
	compdef _PROGRAM PROGRAM
fi
`,
		"fish": `# fish completion for PROGRAM: put it into ~/.config/fish/completions/PROGRAM.fish.
function __PROGRAM_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l out (PROGRAM __complete -- $words[2..-1] 2>/dev/null)
	if test "$out[1]" = ":files"
		# A path after the = of an option is completed without the option, which goes before it again.
		set -l option (string match -r -- '^-[^=]*=' (commandline -ct); or echo)
		printf '%s\n' $option(__fish_complete_path (string replace -r -- '^-[^=]*=' '' (commandline -ct)))
	else
		printf '%s\n' $out
	end
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
`,
	}[shell]
	return strings.ReplaceAll(text, "PROGRAM", t.Program)
}
