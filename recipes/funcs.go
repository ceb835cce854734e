package recipes

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"bonsai/rules"
)

// functions returns what expressions can call. Files are read from dir, which saw is told
// of, and env() asks lookupEnv.
func functions(dir string, lookupEnv func(string) (string, bool), saw func(rules.Read)) map[string]function.Function {
	return map[string]function.Function{
		// Numbers.
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc,
		"int": stdlib.IntFunc, "log": floatFunc(func(x, base float64) float64 { return math.Log(x) / math.Log(base) }), "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc, "pow": floatFunc(math.Pow), "signum": stdlib.SignumFunc,

		// Texts.
		"chomp": stdlib.ChompFunc, "endswith": textTest(strings.HasSuffix), "format": plain(stdlib.FormatFunc),
		"formatlist": plain(stdlib.FormatListFunc), "indent": limited(stdlib.IndentFunc, wideIndent), "join": stdlib.JoinFunc,
		"lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc,
		"regexreplace": stdlib.RegexReplaceFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc,
		"startswith": textTest(strings.HasPrefix), "strcontains": textTest(strings.Contains),
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc,
		"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,

		// Collections.
		"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc,
		"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc,
		"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc,
		"element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc,
		"length": lengthFunc(), "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc,
		"range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc, "setproduct": limited(stdlib.SetProductFunc, largeProduct),
		"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
		"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc,
		"zipmap": stdlib.ZipmapFunc,

		// Types.
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": bounded(stdlib.MakeToFunc(cty.Number)),
		"tostring": stdlib.MakeToFunc(cty.String),
		"tolist":   toCollection(cty.List(cty.DynamicPseudoType), cty.ListVal),
		"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"toset":    toCollection(cty.Set(cty.DynamicPseudoType), cty.SetVal),

		// Encodings, files and the environment.
		"abspath": absFunc(dir), "basename": textFunc(path.Base), "csvdecode": stdlib.CSVDecodeFunc, "dirname": textFunc(path.Dir),
		"env": envFunc(lookupEnv), "facts": factsFunc(), "file": fileFunc(dir, saw), "fileexists": fileExistsFunc(dir, saw),
		"jsondecode": bounded(stdlib.JSONDecodeFunc), "jsonencode": plain(stdlib.JSONEncodeFunc),
	}
}

// text is a parameter that is a text.
func text(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.String} }

// textFunc makes a function of texts a function of the language.
func textFunc(f func(string) string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{text("text")},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(f(args[0].AsString())), nil
		},
	})
}

// textTest makes a question about a text and a part a function of the language.
func textTest(f func(text, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{text("text"), text("part")},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// floatFunc makes a function of two numbers a function of the language. Unlike those of
// cty it refuses a result that is no number, where they panic.
func floatFunc(f func(x, y float64) float64) function.Function {
	number := func(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.Number} }
	return function.New(&function.Spec{
		Params: []function.Parameter{number("x"), number("y")},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			x, _ := args[0].AsBigFloat().Float64()
			y, _ := args[1].AsBigFloat().Float64()
			result := f(x, y)
			if math.IsNaN(result) || math.IsInf(result, 0) {
				return cty.NilVal, fmt.Errorf("the result for %g and %g is not a finite number", x, y)
			}
			return cty.NumberFloatVal(result), nil
		},
	})
}

// lengthFunc counts elements, or the code points of a text.
func lengthFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			t := args[0].Type()
			if t == cty.String || t == cty.DynamicPseudoType || t.IsCollectionType() || t.IsTupleType() || t.IsObjectType() {
				return cty.Number, nil
			}
			return cty.Number, function.NewArgErrorf(0, "a text or a collection is required")
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].Type() == cty.String {
				return cty.NumberIntVal(int64(utf8.RuneCountInString(args[0].AsString()))), nil
			}
			return args[0].Length(), nil
		},
	})
}

// plain makes f refuse steps. f writes any value as text, and that of a step would be how
// the program holds it, another one in every run.
func plain(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			for i, v := range args {
				if holdsStep(v.Type()) {
					return cty.NilType, function.NewArgErrorf(i, "a step is not a text")
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// bounded makes f refuse texts in which there may be a number that is too large to compute with.
func bounded(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if v := args[0]; v.Type() == cty.String && v.IsKnown() && !v.IsNull() && hugeNumber.MatchString(v.AsString()) {
				return cty.NilType, function.NewArgErrorf(0, "the exponent of a number has at most %d digits", maxExponent)
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// holdsStep says whether values of type t are references to steps or have such in them.
func holdsStep(t cty.Type) bool {
	switch {
	case t.IsCollectionType():
		return holdsStep(t.ElementType())
	case t.IsTupleType():
		return slices.ContainsFunc(t.TupleElementTypes(), holdsStep)
	case t.IsObjectType():
		return slices.ContainsFunc(slices.Collect(maps.Values(t.AttributeTypes())), holdsStep)
	}
	return t.IsCapsuleType()
}

// envFunc returns the value of an environment variable, or its second argument if that
// is not set.
func envFunc(lookup func(string) (string, bool)) function.Function {
	rest := text("default")
	return function.New(&function.Spec{
		Params:   []function.Parameter{text("name")},
		VarParam: &rest,
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, "env takes a name and a default")
			}
			if v, ok := lookup(args[0].AsString()); ok {
				return cty.StringVal(v), nil
			}
			if len(args) == 2 {
				return args[1], nil
			}
			return cty.NilVal, function.NewArgErrorf(0, "%s is not set in the environment; a second argument is its default", args[0].AsString())
		},
	})
}

// fileFunc returns the text of a file.
func fileFunc(dir string, saw func(rules.Read)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{text("path")},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := under(dir, args[0].AsString())
			saw(rules.Read{Kind: rules.FileRead, Name: path})
			b, err := ReadText(path)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if !utf8.Valid(b) {
				return cty.NilVal, function.NewArgErrorf(0, "file %s is not a text in UTF-8", args[0].AsString())
			}
			return cty.StringVal(string(b)), nil
		},
	})
}

// fileExistsFunc says whether there is a file or folder at a path.
func fileExistsFunc(dir string, saw func(rules.Read)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{text("path")},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := under(dir, args[0].AsString())
			saw(rules.Read{Kind: rules.FileStat, Name: path})
			_, err := os.Stat(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return cty.NilVal, function.NewArgError(0, fmt.Errorf("cannot tell: %w", err))
			}
			return cty.BoolVal(err == nil), nil
		},
	})
}

// absFunc makes a path that is relative to the recipe's folder absolute.
func absFunc(dir string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{text("path")},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, err := filepath.Abs(under(dir, args[0].AsString()))
			return cty.StringVal(filepath.ToSlash(path)), err
		},
	})
}

// under returns a path that is relative to the recipe's folder.
func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
