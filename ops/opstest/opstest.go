// Package opstest checks what every op promises. Start at CheckManifest.
package opstest

import (
	"bytes"
	"encoding"
	"fmt"
	"io"
	"reflect"
	"testing"
)

// CheckManifest fails t unless every exported field of op, nested ones included,
// changes the text of its manifest. op is a struct whose slices and maps have at
// least one element and whose pointers are set, so that nothing is left unchecked.
func CheckManifest(t *testing.T, op encoding.TextAppender) {
	t.Helper()
	before, err := op.AppendText(nil)
	if err != nil {
		t.Fatalf("AppendText(%+v) = %v", op, err)
	}
	v := reflect.New(reflect.TypeOf(op)).Elem()
	v.Set(reflect.ValueOf(op))
	eachField(t, fmt.Sprintf("%T", op), v, func(name string) {
		after, err := v.Interface().(encoding.TextAppender).AppendText(nil)
		if err != nil {
			t.Errorf("%s changed: AppendText: %v", name, err)
		}
		if bytes.Equal(before, after) {
			t.Errorf("%s is not in the manifest:\n%s", name, before)
		}
	})
}

// eachField changes one plain value below v at a time, calls changed, and puts it back.
func eachField(t *testing.T, name string, v reflect.Value, changed func(name string)) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				eachField(t, name+"."+f.Name, v.Field(i), changed)
			}
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		eachElement(t, name, v, changed)
	case reflect.Array:
		for i := range v.Len() {
			eachField(t, fmt.Sprintf("%s[%d]", name, i), v.Index(i), changed)
		}
	default:
		old := reflect.ValueOf(v.Interface())
		change(t, name, v)
		changed(name)
		v.Set(old)
	}
}

func eachElement(t *testing.T, name string, v reflect.Value, changed func(name string)) {
	t.Helper()
	if v.IsZero() {
		t.Errorf("%s is empty: give the op under test a value for it", name)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		eachField(t, name, v.Elem(), changed)
	case reflect.Slice:
		for i := range v.Len() {
			eachField(t, fmt.Sprintf("%s[%d]", name, i), v.Index(i), changed)
		}
	default: // a map's elements cannot be changed in place
		for _, k := range v.MapKeys() {
			was := v.MapIndex(k)
			e := reflect.New(was.Type()).Elem()
			e.Set(was)
			eachField(t, fmt.Sprintf("%s[%v]", name, k), e, func(n string) {
				v.SetMapIndex(k, e)
				changed(n)
			})
			v.SetMapIndex(k, was)
		}
	}
}

func change(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.CanInt():
		v.SetInt(v.Int() ^ 1)
	case v.CanUint():
		v.SetUint(v.Uint() ^ 1)
	case v.CanFloat():
		v.SetFloat(v.Float()*2 + 1)
	default:
		t.Errorf("%s: a %s cannot be a setting", name, v.Type())
	}
}

// Blob returns b as an op reads an input that is not a file.
func Blob(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}
