package assemble

import (
	"encoding/binary"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/keytable"
)

// Attributes are held packed into one string. As pdata they are some three allocations each, a key, a value and a place for it: two thirds
// of what a trace without text takes, and nearly all of what the garbage collector has to mark in a process that holds tens of thousands
// of traces. Written down they are a third of the bytes, and nothing to follow.
//
//	attribute = key value
//	key       = number+1 of a common key | 0 text
//	value     = kind [text | number | count values | count keys and values]

// maxPacked is how many attributes are packed: putting them back looks through those that are there for each.
const maxPacked = 128

// Keys numbers attribute keys, so that they need not be written out. It is safe for concurrent use.
type Keys struct {
	number *keytable.Table[uint16]
	keys   []string
}

// NewKeys numbers the keys that are common.
func NewKeys(common ...[]string) *Keys {
	k, number := &Keys{}, map[string]uint16{}
	for _, list := range common {
		for _, key := range list {
			if _, ok := number[key]; !ok && len(k.keys) < math.MaxUint16 {
				number[key] = uint16(len(k.keys))
				k.keys = append(k.keys, key)
			}
		}
	}
	k.number = keytable.New(number)
	return k
}

// pack appends the attributes of a map to buf. ok is false when they are to be held as they are: there are many, or there is a key
// twice, which no map can be given.
func (k *Keys) pack(buf []byte, m pcommon.Map) (out []byte, ok bool) {
	if m.Len() > maxPacked {
		return buf, false
	}
	var numbers [maxPacked]uint16
	var others [maxPacked]string
	n, o := 0, 0
	for key, v := range m.All() {
		number, common := k.number.Get(key)
		if common {
			for _, before := range numbers[:n] {
				if before == number {
					return buf, false
				}
			}
			numbers[n] = number
			n++
		} else {
			for _, before := range others[:o] {
				if before == key {
					return buf, false
				}
			}
			others[o] = key
			o++
		}
		buf = k.appendKey(buf, key, number, common)
		if buf, ok = k.appendValue(buf, v); !ok {
			return buf, false
		}
	}
	return buf, true
}

func (k *Keys) appendKey(buf []byte, key string, number uint16, common bool) []byte {
	if common {
		return binary.AppendUvarint(buf, uint64(number)+1)
	}
	return appendText(append(buf, 0), key)
}

func (k *Keys) appendValue(buf []byte, v pcommon.Value) (out []byte, ok bool) {
	buf = append(buf, byte(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
	case pcommon.ValueTypeStr:
		buf = appendText(buf, v.Str())
	case pcommon.ValueTypeInt:
		buf = binary.AppendVarint(buf, v.Int())
	case pcommon.ValueTypeDouble:
		buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v.Double()))
	case pcommon.ValueTypeBool:
		b := byte(0)
		if v.Bool() {
			b = 1
		}
		buf = append(buf, b)
	case pcommon.ValueTypeBytes:
		buf = binary.AppendUvarint(buf, uint64(v.Bytes().Len()))
		buf = append(buf, v.Bytes().AsRaw()...)
	case pcommon.ValueTypeSlice:
		buf = binary.AppendUvarint(buf, uint64(v.Slice().Len()))
		for _, e := range v.Slice().All() {
			if buf, ok = k.appendValue(buf, e); !ok {
				return buf, false
			}
		}
	case pcommon.ValueTypeMap:
		buf = binary.AppendUvarint(buf, uint64(v.Map().Len()))
		return k.pack(buf, v.Map())
	default:
		return buf, false // a kind that pdata has learnt since
	}
	return buf, true
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// unpack puts what pack has written into a map. The map owns its texts: a reader that keeps a model's name must not keep all attributes.
// room is how many more attributes the map is to have room for.
func (k *Keys) unpack(s string, m pcommon.Map, count, room int) {
	r := unpacker{keys: k, s: s}
	m.EnsureCapacity(m.Len() + count + room)
	for r.i < len(s) {
		key := r.key()
		r.value(m.PutEmpty(key))
	}
}

// unpacker reads s from i. It trusts s, which pack wrote.
type unpacker struct {
	keys *Keys
	s    string
	i    int
}

func (r *unpacker) uvarint() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := r.s[r.i]
		r.i++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (r *unpacker) text() string {
	n := int(r.uvarint())
	r.i += n
	return r.s[r.i-n : r.i]
}

func (r *unpacker) key() string {
	if n := r.uvarint(); n > 0 {
		return r.keys.keys[n-1]
	}
	return strings.Clone(r.text())
}

func (r *unpacker) value(v pcommon.Value) {
	kind := pcommon.ValueType(r.s[r.i])
	r.i++
	switch kind {
	case pcommon.ValueTypeStr:
		v.SetStr(strings.Clone(r.text()))
	case pcommon.ValueTypeInt:
		u := r.uvarint()
		v.SetInt(int64(u>>1) ^ -int64(u&1))
	case pcommon.ValueTypeDouble:
		var u uint64
		for i := range 8 {
			u |= uint64(r.s[r.i+i]) << (8 * i)
		}
		r.i += 8
		v.SetDouble(math.Float64frombits(u))
	case pcommon.ValueTypeBool:
		v.SetBool(r.s[r.i] != 0)
		r.i++
	case pcommon.ValueTypeBytes:
		v.SetEmptyBytes().FromRaw([]byte(r.text()))
	case pcommon.ValueTypeSlice:
		list, n := v.SetEmptySlice(), int(r.uvarint())
		list.EnsureCapacity(n)
		for range n {
			r.value(list.AppendEmpty())
		}
	case pcommon.ValueTypeMap:
		m, n := v.SetEmptyMap(), int(r.uvarint())
		m.EnsureCapacity(n)
		for range n {
			r.value(m.PutEmpty(r.key()))
		}
	}
}
