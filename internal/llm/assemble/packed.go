package assemble

import (
	"encoding/binary"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/keytable"
)

// Spans are held packed, each in one string. As pdata a span is some ninety allocations, of its attributes mostly, a key, a value and a
// place for each: nearly all of what the garbage collector has to mark in a process that holds tens of thousands of traces. Written down
// it is a quarter of the bytes, and nothing to follow.
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

// pack appends a span to buf, all but the id of its trace. ok is false when it is to be held as it is: it has many attributes, or a key
// twice, which no map can be given.
func (k *Keys) pack(buf []byte, s ptrace.Span) (out []byte, ok bool) {
	id, parent := s.SpanID(), s.ParentSpanID()
	buf = append(append(buf, id[:]...), parent[:]...)
	buf = appendNumbers(buf, uint64(s.StartTimestamp()), uint64(s.EndTimestamp()), uint64(s.Flags()), uint64(uint32(s.Kind())), uint64(uint32(s.Status().Code())),
		uint64(s.DroppedAttributesCount()), uint64(s.DroppedEventsCount()), uint64(s.DroppedLinksCount()))
	buf = appendText(appendText(appendText(buf, s.TraceState().AsRaw()), s.Name()), s.Status().Message())
	if buf, ok = k.packMap(buf, s.Attributes()); !ok {
		return buf, false
	}
	buf = binary.AppendUvarint(buf, uint64(s.Events().Len()))
	for _, e := range s.Events().All() {
		buf = appendText(appendNumbers(buf, uint64(e.Timestamp()), uint64(e.DroppedAttributesCount())), e.Name())
		if buf, ok = k.packMap(buf, e.Attributes()); !ok {
			return buf, false
		}
	}
	buf = binary.AppendUvarint(buf, uint64(s.Links().Len()))
	for _, l := range s.Links().All() {
		trace, span := l.TraceID(), l.SpanID()
		buf = append(append(buf, trace[:]...), span[:]...)
		buf = appendText(appendNumbers(buf, uint64(l.Flags()), uint64(l.DroppedAttributesCount())), l.TraceState().AsRaw())
		if buf, ok = k.packMap(buf, l.Attributes()); !ok {
			return buf, false
		}
	}
	return buf, true
}

func appendNumbers(buf []byte, list ...uint64) []byte {
	for _, n := range list {
		buf = binary.AppendUvarint(buf, n)
	}
	return buf
}

// packMap appends the number of attributes and the attributes of a map.
func (k *Keys) packMap(buf []byte, m pcommon.Map) (out []byte, ok bool) {
	if m.Len() > maxPacked {
		return buf, false
	}
	buf = binary.AppendUvarint(buf, uint64(m.Len()))
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
		return k.packMap(buf, v.Map())
	default:
		return buf, false // a kind that pdata has learnt since
	}
	return buf, true
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// maxShared is up to how many bytes the texts of a packed span are parts of it when it is put back. To have each of them copied costs more
// than to write them down did, and who keeps a model's name then keeps no more than this; of a longer span, which has a prompt in it, they
// are copied.
const maxShared = 1024

// unpack fills a new span with what pack has written. room is how many more attributes there is to be room for.
func (k *Keys) unpack(packed string, s ptrace.Span, room int) {
	r := unpacker{keys: k, s: packed}
	s.SetSpanID(r.spanID())
	s.SetParentSpanID(r.spanID())
	s.SetStartTimestamp(pcommon.Timestamp(r.uvarint()))
	s.SetEndTimestamp(pcommon.Timestamp(r.uvarint()))
	s.SetFlags(uint32(r.uvarint()))
	s.SetKind(ptrace.SpanKind(r.uvarint()))
	s.Status().SetCode(ptrace.StatusCode(r.uvarint()))
	s.SetDroppedAttributesCount(uint32(r.uvarint()))
	s.SetDroppedEventsCount(uint32(r.uvarint()))
	s.SetDroppedLinksCount(uint32(r.uvarint()))
	s.TraceState().FromRaw(r.own())
	s.SetName(r.own())
	s.Status().SetMessage(r.own())
	r.attributes(s.Attributes(), room)
	n := int(r.uvarint())
	s.Events().EnsureCapacity(n)
	for range n {
		e := s.Events().AppendEmpty()
		e.SetTimestamp(pcommon.Timestamp(r.uvarint()))
		e.SetDroppedAttributesCount(uint32(r.uvarint()))
		e.SetName(r.own())
		r.attributes(e.Attributes(), 0)
	}
	n = int(r.uvarint())
	s.Links().EnsureCapacity(n)
	for range n {
		l := s.Links().AppendEmpty()
		var trace pcommon.TraceID
		r.i += copy(trace[:], r.s[r.i:])
		l.SetTraceID(trace)
		l.SetSpanID(r.spanID())
		l.SetFlags(uint32(r.uvarint()))
		l.SetDroppedAttributesCount(uint32(r.uvarint()))
		l.TraceState().FromRaw(r.own())
		r.attributes(l.Attributes(), 0)
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

func (r *unpacker) spanID() (id pcommon.SpanID) {
	r.i += copy(id[:], r.s[r.i:])
	return id
}

// attributes fills an empty map.
func (r *unpacker) attributes(m pcommon.Map, room int) {
	n := int(r.uvarint())
	m.EnsureCapacity(n + room)
	for range n {
		key := r.key()
		r.value(m.PutEmpty(key))
	}
}

func (r *unpacker) text() string {
	n := int(r.uvarint())
	r.i += n
	return r.s[r.i-n : r.i]
}

// own is the next text as the span may have it.
func (r *unpacker) own() string {
	if len(r.s) <= maxShared {
		return r.text()
	}
	return strings.Clone(r.text())
}

func (r *unpacker) key() string {
	if n := r.uvarint(); n > 0 {
		return r.keys.keys[n-1]
	}
	return r.own()
}

func (r *unpacker) value(v pcommon.Value) {
	kind := pcommon.ValueType(r.s[r.i])
	r.i++
	switch kind {
	case pcommon.ValueTypeStr:
		v.SetStr(r.own())
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
		r.attributes(v.SetEmptyMap(), 0)
	}
}
