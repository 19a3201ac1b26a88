package content

// verb is what a key says about its value.
type verb uint8

const (
	// Values that go.
	verbContent verb = iota // text of the rule's class, whatever its type
	verbSecret              // a credential: removed in every mode

	// Values that stay when they have the shape, and are treated as content of the rule's class when not.
	verbLabel    // one token; a slice of them
	verbLabels   // tokens separated by commas
	verbModel    // a model name, else OtherName
	verbFinish   // finish reasons
	verbEnum     // a constant of an API
	verbNumber   // numbers; also as text, or as a JSON object of nothing but numbers
	verbName     // a name a caller chose, else OtherName
	verbError    // an error type or code, else OtherName
	verbPhrase   // one line that describes infrastructure
	verbURL      // a URL without the values of its query
	verbAgent    // a user agent's products and versions
	verbIdentity // who the user is: kept, or hashed when asked for
	verbOurs     // written by llmspan
	verbSummary  // roles and part types that a redaction left behind
	verbStamp    // unknown key: numbers, booleans and times stay, text goes
	verbScalar   // unknown key with a text word: numbers and booleans stay, text goes
	verbTitle    // a name that a deployment gives, in any script
	verbAllow    // let through by configuration; secrets in it are still cut
)

// rule is what is known about a key.
type rule struct {
	verb  verb
	class Class
	// mode overrides the mode in force, when not empty.
	mode Mode
	// forced: set by configuration, so it comes before prefixes set by configuration.
	forced bool
	// noLength: `<key>.length` is not written, because the key itself may be what a user typed.
	noLength bool
	// keys under which a redaction leaves its measures, made once for keys of the tables.
	keys *measureKeys
}

// measureKeys are the keys under which a redaction leaves what it knows about a text.
type measureKeys struct{ length, count, roles, types string }

func newMeasureKeys(key string) *measureKeys {
	return &measureKeys{key + lengthSuffix, key + countSuffix, key + rolesSuffix, key + typesSuffix}
}

// prefixRule covers the keys that begin with prefix. Structural leaves of content prefixes (role, type, finish reason, tool
// name, ids) are told apart by leafRule, unless userKeys says that what follows the prefix is free text.
type prefixRule struct {
	prefix   string
	verb     verb
	class    Class
	userKeys bool
}

// PlaceKeys are the names by which Allow, Deny and Overrides reach text that is no attribute.
var PlaceKeys = []string{placeStatus, placeSpanName, placeEventName, placeBody, placeLogEvent, placeScope, placeTraceState}

const (
	placeStatus     = "span.status.message"
	placeSpanName   = "span.name"
	placeEventName  = "span.event.name"
	placeBody       = "log.body"
	placeLogEvent   = "log.event_name"
	placeScope      = "scope.name"
	placeTraceState = "trace_state"
)
