package gpu

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Field is a DCGM field id (dcgm_fields.h). Ids are stable; names are not: DCGM 4.6 renamed about 300 of them.
type Field uint16

// Fields that are read for identity and state rather than mapped to a metric by the catalogue.
const (
	FieldDriverVersion Field = 1
	FieldBindEvent     Field = 6
	FieldName          Field = 50
	FieldSerial        Field = 53
	FieldUUID          Field = 54
	FieldPCIBusID      Field = 57
	FieldXID           Field = 230
)

//go:embed fieldnames.txt
var fieldNames string

// names maps every spelling of a field's name, current, older and of exporters before 2.0, to its id.
// The list is DCGM 4.6.1's, as dcgm_fields.h and go-dcgm's alias table have it.
var names = sync.OnceValues(func() (map[string]Field, map[Field]string) {
	byName, byID := make(map[string]Field, 2048), make(map[Field]string, 700)
	for line := range strings.Lines(fieldNames) {
		words := strings.Fields(line)
		id, err := strconv.ParseUint(words[0], 10, 16)
		if err != nil {
			panic("fieldnames.txt: " + line) //nolint:forbidigo // the file is compiled in; every start and every test would say so
		}
		byID[Field(id)] = words[1]
		for _, w := range words[1:] {
			byName[w] = Field(id)
		}
	}
	return byName, byID
})

// FieldByName finds a field by any of its names, for example DCGM_FI_DEV_GPU_UTIL, DCGM_FI_DEV_GPU_UTIL_RATIO or
// dcgm_gpu_utilization.
func FieldByName(name string) (Field, bool) {
	byName, _ := names()
	f, ok := byName[name]
	return f, ok
}

// ParseField reads a field as an operator writes it: a name or a number.
func ParseField(s string) (Field, error) {
	if f, ok := FieldByName(s); ok {
		return f, nil
	}
	if id, err := strconv.ParseUint(s, 10, 16); err == nil && id > 0 {
		return Field(id), nil
	}
	return 0, fmt.Errorf("unknown field %q: use a name from dcgm_fields.h (DCGM_FI_...) or a field number", s)
}

// String is the field's current DCGM name, or its number when this build does not know it.
func (f Field) String() string {
	_, byID := names()
	if n, ok := byID[f]; ok {
		return n
	}
	return strconv.Itoa(int(f))
}
