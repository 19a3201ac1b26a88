package content

// Class says what kind of text a redacted value was. It is the only thing about a value that is ever counted.
type Class uint8

// The classes, in the order of Facts.ByClass.
const (
	ClassMessage    Class = iota // prompts, system instructions, conversation history
	ClassCompletion              // what the model said, reasoning included
	ClassTool                    // tool definitions, arguments and results; function arguments
	ClassDocument                // retrieved documents, database queries, request and response bodies
	ClassTemplate                // prompt templates and their variables
	ClassError                   // exception messages, stack traces, status messages
	ClassURL                     // parts of a URL that can hold what a user typed
	ClassIdentity                // who the user is
	ClassSecret                  // credentials
	ClassBlob                    // bytes, base64, data URLs, vectors
	ClassName                    // names that callers choose: spans, events, functions, agents, models
	ClassMetadata                // free-form key-value pairs that an application attached
	ClassUnknown                 // nobody has named the key, and the value is not of a harmless shape
	NumClasses                   // how many there are
)

var classNames = [NumClasses]string{
	"message", "completion", "tool", "document", "template", "error", "url", "identity", "secret", "blob", "name", "metadata", "unknown",
}

// String is the class as it appears in the attribute llm.class.
func (c Class) String() string {
	if c < NumClasses {
		return classNames[c]
	}
	return classNames[ClassUnknown]
}

// Facts counts what a redaction did: values redacted, by class, and data points that became part of an equal one. The caller owns it; one goroutine at a time may write to it.
type Facts struct {
	ByClass [NumClasses]int64
	Merged  int64
}

// Total is the number of redacted values of all classes.
func (f *Facts) Total() int64 {
	var n int64
	for _, c := range f.ByClass {
		n += c
	}
	return n
}

// Add adds the counts of g.
func (f *Facts) Add(g *Facts) {
	for i, c := range g.ByClass {
		f.ByClass[i] += c
	}
	f.Merged += g.Merged
}

func (f *Facts) count(c Class) {
	if f != nil {
		f.ByClass[c]++
	}
}
