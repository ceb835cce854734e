package ops

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// AppendManifest appends to b the text that decides whether an op with these
// settings is up to date: a line "op NAME vVERSION", then a line
// "set FIELD VALUE" for each exported field of op, a struct or a pointer to one, in
// order of declaration. Fields of nested structs are named with dots, elements of
// slices and maps with brackets; map keys are sorted. Strings are quoted.
//
// Version changes whenever the op gives other bytes for the same settings.
//
// It returns an error for a field that has no canonical text: a function, a channel,
// an interface that holds no plain value, a float that is not a number.
func AppendManifest(b []byte, name string, version int, op any) ([]byte, error) {
	v := reflect.Indirect(reflect.ValueOf(op))
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("op %s: settings are a %T, not a struct", name, op)
	}
	b = fmt.Appendf(b, "op %s v%d\n", name, version)
	b, err := appendStruct(b, "", v)
	if err != nil {
		return nil, fmt.Errorf("op %s: %w", name, err)
	}
	return b, nil
}

func appendStruct(b []byte, prefix string, v reflect.Value) ([]byte, error) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		var err error
		if b, err = appendField(b, prefix+f.Name, v.Field(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendField(b []byte, name string, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return appendLine(b, name, "none"), nil
		}
		return appendField(b, name, v.Elem())
	case reflect.Struct:
		return appendStruct(b, name+".", v)
	case reflect.Slice, reflect.Array:
		return appendList(b, name, v)
	case reflect.Map:
		return appendMap(b, name, v)
	default:
		s, err := scalar(v)
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
		return appendLine(b, name, s), nil
	}
}

// appendList writes the length of a list, so that no element can be mistaken for
// another list's, and then its elements.
func appendList(b []byte, name string, v reflect.Value) ([]byte, error) {
	b = appendLine(b, name+"[]", strconv.Itoa(v.Len()))
	for i := range v.Len() {
		var err error
		if b, err = appendField(b, name+"["+strconv.Itoa(i)+"]", v.Index(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendMap(b []byte, name string, v reflect.Value) ([]byte, error) {
	keys := make(map[string]reflect.Value, v.Len())
	names := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		s, err := scalar(k)
		if err != nil {
			return nil, fmt.Errorf("setting %s: key: %w", name, err)
		}
		keys[s], names = k, append(names, s)
	}
	slices.Sort(names)
	b = appendLine(b, name+"[]", strconv.Itoa(len(names)))
	for _, s := range names {
		var err error
		if b, err = appendField(b, name+"["+s+"]", v.MapIndex(keys[s])); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendLine(b []byte, name, value string) []byte {
	b = append(b, "set "...)
	b = append(b, name...)
	b = append(b, ' ')
	b = append(b, value...)
	return append(b, '\n')
}

func scalar(v reflect.Value) (string, error) {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.String:
		return strconv.Quote(v.String()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Float32:
		return float(v.Float(), 32)
	case reflect.Float64:
		return float(v.Float(), 64)
	default:
		return "", fmt.Errorf("a %s has no canonical text", v.Type())
	}
}

func float(x float64, bits int) (string, error) {
	if math.IsNaN(x) {
		return "", fmt.Errorf("not a number")
	}
	return strconv.FormatFloat(x, 'g', -1, bits), nil
}
