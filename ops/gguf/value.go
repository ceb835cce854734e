package gguf

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The container's numbers for the types of values.
const (
	kindUint8 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

// minSize returns the least bytes that a value of a kind takes in a file, 0 for a kind
// that does not exist.
func minSize(kind uint32) int64 {
	switch kind {
	case kindUint8, kindInt8, kindBool:
		return 1
	case kindUint16, kindInt16:
		return 2
	case kindUint32, kindInt32, kindFloat32:
		return 4
	case kindUint64, kindInt64, kindFloat64, kindString:
		return 8
	case kindArray:
		return 12
	default:
		return 0
	}
}

// kindOf returns the kind of a scalar, and for a slice the kind of its elements; ok is
// false for a Go type that GGUF cannot hold.
func kindOf(v any) (kind uint32, array, ok bool) {
	switch v.(type) {
	case uint8, []uint8:
		kind = kindUint8
	case int8, []int8:
		kind = kindInt8
	case uint16, []uint16:
		kind = kindUint16
	case int16, []int16:
		kind = kindInt16
	case uint32, []uint32:
		kind = kindUint32
	case int32, []int32:
		kind = kindInt32
	case float32, []float32:
		kind = kindFloat32
	case bool, []bool:
		kind = kindBool
	case string, []string:
		kind = kindString
	case uint64, []uint64:
		kind = kindUint64
	case int64, []int64:
		kind = kindInt64
	case float64, []float64:
		kind = kindFloat64
	case []any:
		return kindArray, true, true
	default:
		return 0, false, false
	}
	return kind, strings.HasPrefix(fmt.Sprintf("%T", v), "[]"), true
}

// typeName returns what a message calls a value's type.
func typeName(v any) string { return strings.Replace(fmt.Sprintf("%T", v), "[]", "array of ", 1) }

// asInts widens an array of any integers that int64 holds.
func asInts(v any) ([]int64, bool) {
	switch v := v.(type) {
	case []uint8:
		return widen(v), true
	case []int8:
		return widen(v), true
	case []uint16:
		return widen(v), true
	case []int16:
		return widen(v), true
	case []uint32:
		return widen(v), true
	case []int32:
		return widen(v), true
	case []int64:
		return v, true
	case []uint64:
		list := widen(v)
		for _, n := range list {
			if n < 0 {
				return nil, false
			}
		}
		return list, true
	default:
		return nil, false
	}
}

func widen[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64](v []T) []int64 {
	list := make([]int64, len(v))
	for i, n := range v {
		list[i] = int64(n)
	}
	return list
}

// appendKV appends a metadata pair as the file holds it.
func appendKV(b []byte, kv KV) ([]byte, error) {
	if kv.Key == "" || len(kv.Key) > maxKey {
		return nil, refuse("key %s: %d bytes", quote(kv.Key), len(kv.Key))
	}
	kind, array, ok := kindOf(kv.Value)
	if !ok {
		return nil, refuse("key %s: a value of type %T", quote(kv.Key), kv.Value)
	}
	b = appendString(b, kv.Key)
	if array {
		kind = kindArray
	}
	b = binary.LittleEndian.AppendUint32(b, kind)
	b, err := appendValue(b, kv.Value)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", quote(kv.Key), err)
	}
	return b, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends a scalar, or an array with its head.
func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return appendString(b, v), nil
	case []string:
		b = appendArrayHead(b, kindString, len(v))
		for _, s := range v {
			b = appendString(b, s)
		}
		return b, nil
	case []any:
		b = appendArrayHead(b, kindArray, len(v))
		for _, item := range v {
			if _, array, ok := kindOf(item); !ok || !array {
				return nil, refuse("an array of arrays holds a %T", item)
			}
			var err error
			if b, err = appendValue(b, item); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	if kind, array, _ := kindOf(v); array {
		b = appendArrayHead(b, kind, lenOf(v))
	}
	return binary.Append(b, binary.LittleEndian, v)
}

func appendArrayHead(b []byte, kind uint32, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, kind)
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

// lenOf returns the items of a slice of numbers or booleans.
func lenOf(v any) int {
	kind, _, _ := kindOf(v)
	return binary.Size(v) / int(minSize(kind))
}

// value reads a scalar or an array.
func (c *cursor) value(kind uint32, depth int) (any, error) {
	switch kind {
	case kindBool:
		list, err := c.bools(1)
		return first(list, err)
	case kindString:
		return c.string(maxString)
	case kindArray:
		return c.array(depth + 1)
	case kindUint8:
		return number[uint8](c)
	case kindInt8:
		return number[int8](c)
	case kindUint16:
		return number[uint16](c)
	case kindInt16:
		return number[int16](c)
	case kindUint32:
		return number[uint32](c)
	case kindInt32:
		return number[int32](c)
	case kindUint64:
		return number[uint64](c)
	case kindInt64:
		return number[int64](c)
	case kindFloat32:
		return number[float32](c)
	case kindFloat64:
		return number[float64](c)
	default:
		return nil, refuse("unknown value type %d", kind)
	}
}

// maxDepth is the deepest nesting of arrays; no known writer nests them at all.
const maxDepth = 4

// array reads an array with its head.
func (c *cursor) array(depth int) (any, error) {
	kind, err := number[uint32](c)
	if err != nil {
		return nil, err
	}
	count, err := number[uint64](c)
	if err != nil {
		return nil, err
	}
	size := minSize(kind)
	if size == 0 || depth > maxDepth {
		return nil, refuse("array of value type %d at depth %d", kind, depth)
	}
	if count > uint64(c.left/size) {
		return nil, refuse("truncated: array of %d items of at least %d bytes in %d bytes", count, size, c.left)
	}
	return c.items(kind, int(count), depth)
}

// items reads the items of an array, whose count was checked.
func (c *cursor) items(kind uint32, n, depth int) (any, error) {
	switch kind {
	case kindBool:
		return c.bools(n)
	case kindString:
		return repeat(n, func() (string, error) { return c.string(maxString) })
	case kindArray:
		return repeat(n, func() (any, error) { return c.array(depth + 1) })
	case kindUint8:
		return numbers[uint8](c, n)
	case kindInt8:
		return numbers[int8](c, n)
	case kindUint16:
		return numbers[uint16](c, n)
	case kindInt16:
		return numbers[int16](c, n)
	case kindUint32:
		return numbers[uint32](c, n)
	case kindInt32:
		return numbers[int32](c, n)
	case kindUint64:
		return numbers[uint64](c, n)
	case kindInt64:
		return numbers[int64](c, n)
	case kindFloat32:
		return numbers[float32](c, n)
	default:
		return numbers[float64](c, n)
	}
}

// repeat reads n items.
func repeat[T any](n int, item func() (T, error)) ([]T, error) {
	list := make([]T, n)
	for i := range list {
		var err error
		if list[i], err = item(); err != nil {
			return nil, fmt.Errorf("item %d of %d: %w", i, n, err)
		}
	}
	return list, nil
}

func first[T any](list []T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return list[0], nil
}

// bools reads booleans, which are bytes of 0 or 1.
func (c *cursor) bools(n int) ([]bool, error) {
	b, err := c.bytes(int64(n))
	if err != nil {
		return nil, err
	}
	list := make([]bool, n)
	for i, v := range b {
		if v > 1 {
			return nil, refuse("boolean %d", v)
		}
		list[i] = v == 1
	}
	return list, nil
}

// A fixed is a number of fixed size.
type fixed interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64
}

func number[T fixed](c *cursor) (T, error) {
	return first(numbers[T](c, 1))
}

// numbers reads n little-endian numbers.
func numbers[T fixed](c *cursor, n int) ([]T, error) {
	list := make([]T, n)
	b, err := c.bytes(int64(binary.Size(list)))
	if err != nil {
		return nil, err
	}
	if _, err := binary.Decode(b, binary.LittleEndian, list); err != nil {
		return nil, err
	}
	return list, nil
}
