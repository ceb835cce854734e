package recipes

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"bonsai/engine"
	"bonsai/rules"
)

var resourcesSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "timeout"}, {Name: "memory"}, {Name: "retries"}}}

// maxRetries bounds how often an action is tried again.
const maxRetries = 100

// resources is what the actions of a step are given beside what its rule says.
type resources struct {
	timeout time.Duration // 0: as the rule says
	memory  int64         // bytes; 0: as the rule says
	retries int           // -1: as the rule says
}

// provide gives the actions that were added since from what the block says of resources.
func (x *expansion) provide(from int, ctx *hcl.EvalContext) {
	if len(x.decl.resources) == 0 {
		return
	}
	r := resources{retries: -1}
	for i, b := range x.decl.resources {
		if i > 0 {
			x.say(rules.Mistake(b.DefRange, "Duplicate resources block", "The first is at %s.", x.decl.resources[0].DefRange))
			continue
		}
		x.readResources(&r, b, ctx)
	}
	x.loader.recipe.Graph.Amend(from, func(a *engine.Action) {
		if r.timeout > 0 {
			a.Timeout = r.timeout
		}
		if r.memory > 0 {
			a.Peak = r.memory
		}
		if r.retries >= 0 {
			a.Retries = r.retries
		}
	})
}

func (x *expansion) readResources(r *resources, b *hcl.Block, ctx *hcl.EvalContext) {
	content, diags := b.Body.Content(resourcesSchema)
	x.say(diags...)
	for _, a := range inOrder(content.Attributes) {
		v, diags := a.Expr.Value(ctx)
		x.say(diags...)
		if diags.HasErrors() || !v.IsKnown() || v.IsNull() {
			continue
		}
		if wrong := r.set(a.Name, v); wrong != "" {
			d := rules.Mistake(a.Expr.Range(), "Unsuitable "+a.Name, "%s", wrong)
			d.Expression, d.EvalContext = a.Expr, ctx
			x.say(d)
			x.decl.failed = true
		}
	}
}

// set takes one setting. It returns in a sentence what is wrong with it, or "".
func (r *resources) set(name string, v cty.Value) string {
	text, err := convert.Convert(v, cty.String)
	if err != nil {
		return "This is " + v.Type().FriendlyName() + "."
	}
	switch s := text.AsString(); name {
	case "timeout":
		if r.timeout, err = time.ParseDuration(s); err != nil || r.timeout <= 0 {
			return "A time is a number and a unit, as in \"90s\", \"30m\" or \"2h\"; this is " + quote(s) + "."
		}
	case "memory":
		if r.memory, err = parseBytes(s); err != nil {
			return "Memory is a number of bytes, as in \"8GiB\" or \"512MiB\"; this is " + quote(s) + "."
		}
	case "retries":
		if r.retries, err = strconv.Atoi(s); err != nil || r.retries < 0 || r.retries > maxRetries {
			return "A whole number from 0 to " + strconv.Itoa(maxRetries) + " is expected; this is " + quote(s) + "."
		}
	}
	return ""
}

// parseBytes reads a number of bytes, at least 1, with a unit: B, kB, MB, GB, TB, or KiB, MiB,
// GiB, TiB, of 1024.
func parseBytes(s string) (int64, error) {
	digits := strings.TrimRight(s, "kKMGTiB ")
	unit, ok := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
	}[strings.ToUpper(strings.TrimSpace(s[len(digits):]))]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || !(n*unit >= 1 && n*unit < math.MaxInt64) {
		return 0, strconv.ErrSyntax
	}
	return int64(n * unit), nil
}
