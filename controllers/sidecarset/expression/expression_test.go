// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	_ "github.com/regatta-sh/regatta/test/proptest"
)

func TestEvaluate(t *testing.T) {
	for name, tc := range map[string]struct {
		text, variable, value string
		want                  string // in thousandths, or the error
	}{
		"a share":                               {"cpu*50%", "cpu", "1", "500"},
		"the variable in other letters":         {"CPU / 3", "cpu", "1", "333"},
		"the larger one":                        {"max(cpu*50%, 200m)", "cpu", "100m", "200"},
		"the smaller one":                       {"min(memory, 1Gi)", "memory", "2Gi", "1073741824000"},
		"memory and more":                       {"memory/4+64Mi", "memory", "256Mi", "134217728000"},
		"a plain number":                        {"0.25", "cpu", "7", "250"},
		"a number added to an amount":           {"cpu + 1", "cpu", "500m", "1500"},
		"parentheses":                           {"(cpu + 100m) * 2", "cpu", "100m", "400"},
		"signs":                                 {"--cpu - -100m", "cpu", "100m", "200"},
		"each product is truncated":             {"cpu*33.3333%*3", "cpu", "100m", "99"},
		"a decimal is exact":                    {"cpu*0.1*10", "cpu", "1", "1000"},
		"less than nothing":                     {"cpu - 200m", "cpu", "100m", "the result is negative"},
		"a divisor that comes out as zero":      {"cpu/(1-1)", "cpu", "1", "it divides by zero"},
		"an amount times an amount":             {"cpu*cpu", "cpu", "1", "a quantity can not be multiplied by a quantity"},
		"divided by an amount":                  {"1/cpu", "cpu", "1", "nothing can be divided by a quantity"},
		"the other variable":                    {"memory", "cpu", "1", `"memory" is no number, percentage or quantity, and not the variable cpu`},
		"an end too early":                      {"cpu *", "cpu", "1", "it ends where a value is expected"},
		"one argument":                          {"max(cpu)", "cpu", "1", `")" stands where "," is expected`},
		"a number that no number can be":        {"1e999*cpu", "cpu", "1", `"1e999" is no number, percentage or quantity, and not the variable cpu`},
		"many parentheses":                      {strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), "cpu", "1", "more than 64 parts are inside of each other"},
		"an expression that is longer than all": {strings.Repeat("1+", 1000) + "1", "cpu", "1", "it is longer than 1024 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := evaluated(tc.text, tc.variable, tc.value); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func evaluated(text, variable, value string) string {
	e, err := Parse(text, variable)
	if err != nil {
		return err.Error()
	}
	milli, err := e.Evaluate(resource.MustParse(value))
	if err != nil {
		return err.Error()
	}
	return milli.String()
}

// Whatever stands in an expression, it has a value or an error, at once.
func TestEveryExpressionHasAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := []string{"cpu", "(", ")", "+", "-", "*", "/", ",", "max", "min", "0", "1", "50%", "200m", "1e3", "9999999999999999999Ei", " ", "é"}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 30).Draw(t, "words"), "")
		if evaluated(text, "cpu", "3") == "" {
			t.Errorf("%q has no answer", text)
		}
	})
}
