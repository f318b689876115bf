package command

import "strings"

// # Completion in shells
//
// The completion scripts call the program with the word __complete. zsh and fish pass the
// words of the line without quotes, and quote the candidates that they insert. bash passes the
// line, because readline replaces only a part of the last word and inserts candidates
// unchanged: the program removes the part of the word that readline keeps, and quotes the rest.

// Shells returns the shells that have completion.
func Shells() []string { return []string{"bash", "fish", "zsh"} }

// Breaks contains the default characters that end a word for readline, as in the variable
// COMP_WORDBREAKS of bash.
const Breaks = " \t\n\"'@><=;|&(:"

// CompleteLine returns the candidates for the end of a line of bash, as texts that replace
// the word that readline completes. breaks are the characters that end such a word.
func (t *Table) CompleteLine(line, breaks string, from Source) []string {
	l := parseLine(line, breaks)
	if len(l.words) < 2 {
		return nil
	}
	c := t.Complete(l.words[1:], from)
	var out []string
	for _, word := range c.All() {
		if rest, ok := strings.CutPrefix(word, l.kept); ok {
			out = append(out, l.escape(rest))
		}
	}
	return out
}

// CompleteWhole is like CompleteLine, but returns whole words without quotes.
func (t *Table) CompleteWhole(line string, from Source) []string {
	l := parseLine(line, "")
	if len(l.words) < 2 {
		return nil
	}
	c := t.Complete(l.words[1:], from)
	return c.All()
}

// A shellLine is the last command of a line.
type shellLine struct {
	words []string // the words without quotes; the last one ends at the cursor
	quote byte     // the quote that is open at the end, or 0
	kept  string   // the part of the last word before the word that readline completes
}

// parseLine splits a line by the rules of bash. It does not expand anything.
func parseLine(line, breaks string) shellLine {
	var (
		out              shellLine
		word             strings.Builder
		inWord, redirect bool
		kept, opened     int // lengths of word at the last break character and at the last quote
	)
	end := func() {
		if inWord && !redirect && (len(out.words) > 0 || !isAssignment(word.String())) {
			out.words = append(out.words, word.String())
		}
		redirect = redirect && !inWord
		word.Reset()
		inWord, kept, opened = false, 0, 0
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case out.quote != 0 && c == out.quote:
			out.quote = 0
		case c == '\\' && out.quote == 0 || c == '\\' && out.quote == '"' && i+1 < len(line) && strings.IndexByte("$`\"\\\n", line[i+1]) >= 0:
			inWord = true
			if i++; i < len(line) && line[i] != '\n' {
				word.WriteByte(line[i])
			}
		case out.quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			out.quote, inWord, opened = c, true, word.Len()
		case c == ' ' || c == '\t':
			end()
		case strings.IndexByte(";|&()\n", c) >= 0: // another command begins
			end()
			out.words, redirect = nil, false
		case c == '<' || c == '>':
			end()
			redirect = true
		default:
			inWord = true
			word.WriteByte(c)
			if strings.IndexByte(breaks, c) >= 0 {
				kept = word.Len()
			}
		}
	}
	if redirect {
		return shellLine{}
	}
	if out.quote != 0 {
		kept = opened
	}
	out.words, out.kept = append(out.words, word.String()), word.String()[:kept]
	return out
}

// isAssignment reports whether a word before a command sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// escape returns text so that bash reads it unchanged at the end of the line.
func (l *shellLine) escape(text string) string {
	special := " \t\"'\\$&;<>()|*?[]{}`!"
	switch l.quote {
	case '\'':
		return strings.ReplaceAll(text, "'", `'\''`)
	case '"':
		special = "\"\\$`"
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		home := strings.HasPrefix(text, "~/") // a path in the home directory: the shell expands it
		if strings.IndexByte(special, c) >= 0 || i == 0 && l.quote == 0 && l.kept == "" && (c == '#' || c == '~' && !home) {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Script returns the completion script of a shell for the commands with the given names, or ""
// if the shell is not supported. The script calls the command that is completed. If that is an
// alias or a function, it calls the first of names.
func Script(shell string, names []string) string {
	text := map[string]string{
		"bash": `# bash completion for PROGRAM: source it, or put it into bash-completion's directory.
_PROGRAM() {
	local program="${1/#~\//$HOME/}" x
	type -P "$program" >/dev/null || program=PROGRAM
	COMPREPLY=()
	while IFS= read -r x; do
		COMPREPLY+=("$x")
	done < <("$program" __complete -bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
	[[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *[=/] ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -F _PROGRAM NAMES
`,
		"zsh": `#compdef NAMES
# zsh completion for PROGRAM: put it into a directory of $fpath as _PROGRAM, or source it.
_PROGRAM() {
	local program="${(Q)words[1]}" last="$IPREFIX$PREFIX"
	local -a out
	whence -p -- "$program" >/dev/null || program=PROGRAM
	out=("${(@f)$("$program" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)last}" 2>/dev/null)}")
	case "$out[1]" in
	:files | :directories)
		compset -P '-*='
		if [[ "$out[1]" == ":files" ]]; then _files; else _files -/; fi
		return
		;;
	esac
	out=(${out:#})
	compadd -S '' -- ${(M)out:#*[=/]}
	compadd -- ${out:#*[=/]}
}
if [[ "$zsh_eval_context[-1]" == loadautofunc ]]; then
	_PROGRAM "$@"
else
	(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
	compdef _PROGRAM NAMES
fi
`,
		"fish": `# fish completion for PROGRAM: put it into ~/.config/fish/completions/PROGRAM.fish.
function __PROGRAM_complete
	set -l words (commandline -opc)
	set -l last (commandline -ct)
	set -l text (string unescape -- $last; or string unescape -- $last"'"; or string unescape -- $last'"'; or echo -- $last)
	set -l program $words[1]
	command -q -- $program; or set program PROGRAM
	set -l out (command $program __complete -- $words[2..-1] "$text" 2>/dev/null)
	switch "$out[1]"
		case :files :directories
			# A path after the = of an option is completed without the option, which goes before it again.
			set -l option (string match -r -- '^-[^=]*=' "$text"; or echo)
			set -l path (string replace -r -- '^-[^=]*=' '' "$text")
			if test "$out[1]" = :files
				printf '%s\n' $option(__fish_complete_path "$path")
			else
				printf '%s\n' $option(__fish_complete_directories "$path" '')
			end
		case '*'
			printf '%s\n' $out
	end
end
COMPLETE
`,
	}[shell]
	var fish []string
	for _, name := range names {
		fish = append(fish, "complete -c "+name+" -f -a '(__PROGRAM_complete)'")
	}
	return strings.NewReplacer("COMPLETE", strings.ReplaceAll(strings.Join(fish, "\n"), "PROGRAM", names[0]), "NAMES", strings.Join(names, " "), "PROGRAM", names[0]).Replace(text)
}
