package diag

import (
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/source"
)

// maxLines is the maximum number of source lines in a snippet. Longer ones are cut around the
// position of the message.
const maxLines = 40

// A snippet contains the source lines around a range.
type snippet struct {
	context    string   // header of the outermost enclosing block, or ""
	lines      []string // without line breaks
	first      int      // number of the first line
	start, end int      // offsets of the highlight in the joined lines; always within them
	hidden     bool     // the text must not be shown: there are no lines
	bare       bool     // values of references in it are not shown
}

// code returns the lines joined by line breaks.
func (s *snippet) code() string { return strings.Join(s.lines, "\n") }

// parsed caches the files that were parsed to find block headers. A file is only parsed when a
// message about it is shown.
type parsed struct {
	mu    sync.Mutex
	files map[*source.File]*hcl.File
}

// snippet returns the lines of a range, or of the larger context if given. It returns nil if
// the source is not available. If the source contains values that must not be shown, the
// snippet has no lines. object means that the message refers to an object: then the header is
// also set if the range is the header itself.
func (p *parsed) snippet(set *source.Set, at, context *source.Range, object bool) *snippet {
	f := set.File(at.Filename)
	if f == nil || f.Bytes == nil {
		return nil
	}
	if f.Layer.Secret() || set.Concealed(at.Filename) {
		return &snippet{hidden: true}
	}
	at = withOffsets(f, at)
	firstLine, lastLine := at.Start.Line, max(at.Start.Line, at.End.Line)
	if context != nil && context.Filename == at.Filename {
		firstLine, lastLine = min(firstLine, context.Start.Line), max(lastLine, context.End.Line)
	}
	firstLine = max(firstLine, 1, at.Start.Line-maxLines/2)
	lastLine = min(lastLine, firstLine+maxLines-1)
	if !f.Shows(firstLine, lastLine) {
		return &snippet{hidden: true, context: p.header(f, at.Start.Byte, object)}
	}
	s := &snippet{first: firstLine, context: p.header(f, at.Start.Byte, object), bare: !f.ShowsValues(firstLine, lastLine)}
	offset := 0
	for n := firstLine; n <= lastLine; n++ {
		line := f.Line(n)
		if n > firstLine && line == "" && n == lastLine && n > at.Start.Line {
			break // the range ends where the next line starts
		}
		if n == at.Start.Line {
			s.start = offset + column(f, n, at.Start.Byte, line)
		}
		if n == at.End.Line {
			s.end = offset + column(f, n, at.End.Byte, line)
		}
		s.lines = append(s.lines, line)
		offset += len(line) + 1
	}
	total := max(0, offset-1)
	if at.End.Line > s.first+len(s.lines)-1 {
		s.end = total
	}
	s.start = min(s.start, total)
	s.end = min(max(s.end, s.start), total)
	if s.end == s.start && s.end < total {
		s.end++ // an empty range is shown as the following character
	}
	s.hideCredentials()
	return s
}

// hideCredentials removes credentials from the lines. The highlight is adjusted.
func (s *snippet) hideCredentials() {
	code := s.code()
	shown := source.HideCredentials(code)
	if shown == code {
		return
	}
	after := len(source.HideCredentials(code[s.end:]))
	s.start = min(len(source.HideCredentials(code[:s.start])), len(shown))
	s.end = max(s.start, len(shown)-after)
	s.lines = strings.Split(shown, "\n")
}

// withOffsets returns a range with offsets. A range that is made from a line and a column, such as
// that of an explanation, has none.
func withOffsets(f *source.File, at *source.Range) *source.Range {
	begin := f.LineStart(at.Start.Line)
	if at.Start.Byte > begin || at.Start.Byte == begin && at.Start.Column <= 1 {
		return at
	}
	out := *at
	out.Start.Byte = begin + min(max(at.Start.Column-1, 0), len(f.Line(at.Start.Line)))
	out.End.Byte = max(out.Start.Byte, f.LineStart(at.End.Line)+min(max(at.End.Column-1, 0), len(f.Line(at.End.Line))))
	return &out
}

// column returns the offset of a byte of the file in line n, limited to the line.
func column(f *source.File, n, offset int, line string) int {
	return min(max(offset-f.LineStart(n), 0), len(line))
}

// header returns the header of the outermost block around an offset: `resource "a" "b"`.
func (p *parsed) header(f *source.File, offset int, object bool) string {
	file := p.file(f)
	if file == nil {
		return ""
	}
	nav, ok := file.Nav.(interface{ ContextString(offset int) string })
	if !ok {
		return ""
	}
	// One to the left: a message about a header itself does not need it.
	if text := nav.ContextString(offset - 1); text != "" || !object {
		return text
	}
	return nav.ContextString(offset)
}

func (p *parsed) file(f *source.File) *hcl.File {
	p.mu.Lock()
	defer p.mu.Unlock()
	if file, ok := p.files[f]; ok {
		return file
	}
	var file *hcl.File
	if _, deep := source.TooDeep(f.Path, f.Bytes); deep {
		// JSON syntax trees have no further information
	} else if strings.HasSuffix(f.Path, ".json") {
		file, _ = json.Parse(f.Bytes, f.Path)
	} else {
		file, _ = hclsyntax.ParseConfig(f.Bytes, f.Path, hcl.InitialPos)
	}
	if p.files == nil {
		p.files = make(map[*source.File]*hcl.File)
	}
	p.files[f] = file
	return file
}
