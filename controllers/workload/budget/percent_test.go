// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

func TestPercent(t *testing.T) {
	tests := map[string]struct {
		value   intstr.IntOrString
		total   int
		roundUp bool
		want    int
		fails   bool
	}{
		"a number is itself, whatever the total is":     {intstr.FromInt32(7), 3, true, 7, false},
		"a negative number stays negative":              {intstr.FromInt32(-1), 3, true, -1, false},
		"20% of 10 is 2, rounded up":                    {intstr.FromString("20%"), 10, true, 2, false},
		"20% of 10 is 2, rounded down":                  {intstr.FromString("20%"), 10, false, 2, false},
		"20% of 4 is 1 rounded up":                      {intstr.FromString("20%"), 4, true, 1, false},
		"20% of 4 is 0 rounded down":                    {intstr.FromString("20%"), 4, false, 0, false},
		"20% of 0 is 0":                                 {intstr.FromString("20%"), 0, true, 0, false},
		"0% of 9 is 0 even rounded up":                  {intstr.FromString("0%"), 9, true, 0, false},
		"1% of 1 is 1 rounded up":                       {intstr.FromString("1%"), 1, true, 1, false},
		"more than all is possible":                     {intstr.FromString("150%"), 10, true, 15, false},
		"a negative percentage is negative":             {intstr.FromString("-50%"), 10, true, -5, false},
		"so many pods that an int overflows are capped": {intstr.FromString("9223372036854775807%"), 1000, true, math.MaxInt32, false},
		"a numeric string is an error":                  {intstr.FromString("5"), 10, true, 0, true},
		"an empty string is an error":                   {intstr.FromString(""), 10, true, 0, true},
		"a percent sign alone is an error":              {intstr.FromString("%"), 10, true, 0, true},
		"a float is an error at run time":               {intstr.FromString("12.5%"), 10, true, 0, true},
		"words are an error":                            {intstr.FromString("half%"), 10, true, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ResolvePercent(tc.value, tc.total, tc.roundUp)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("Percent(%s, %d, %v) = %d, %v; want %d, failing %v", tc.value.String(), tc.total, tc.roundUp, got, err, tc.want, tc.fails)
			}
		})
	}
}

func TestPartition(t *testing.T) {
	number, text := intstr.FromInt32, intstr.FromString
	tests := map[string]struct {
		value    intstr.IntOrString
		replicas int
		want     int
		fails    bool
	}{
		"a number is itself":                           {number(3), 10, 3, false},
		"a number above the replicas is all":           {number(11), 10, 10, false},
		"a negative number is none":                    {number(-1), 10, 0, false},
		"an integer 10 of 10 keeps all, being no text": {number(10), 10, 10, false},
		"99% of 10 keeps 9, never all":                 {text("99%"), 10, 9, false},
		"99% of 4 keeps 3":                             {text("99%"), 4, 3, false},
		"99.9% of 1000 keeps 999":                      {text("99.9%"), 1000, 999, false},
		"100% keeps all":                               {text("100%"), 10, 10, false},
		"100.0% does not: only the very text does":     {text("100.0%"), 10, 9, false},
		"0100% neither":                                {text("0100%"), 10, 9, false},
		"99% of a single pod keeps it":                 {text("99%"), 1, 1, false},
		"1% of a single pod keeps it":                  {text("1%"), 1, 1, false},
		"1% of 10 keeps 1: it is rounded up":           {text("1%"), 10, 1, false},
		"50% of 3 keeps 2":                             {text("50%"), 3, 2, false},
		"12.5% of 8 keeps 1: it is a float":            {text("12.5%"), 8, 1, false},
		"12.5% of 9 keeps 2":                           {text("12.5%"), 9, 2, false},
		"0% keeps none":                                {text("0%"), 10, 0, false},
		"a little of none is none":                     {text("50%"), 0, 0, false},
		"100% of none is none":                         {text("100%"), 0, 0, false},
		"150% keeps all":                               {text("150%"), 10, 10, false},
		"a number that no int holds keeps all":         {text("1e300%"), 10, 10, false},
		"a very negative one keeps none":               {text("-1e300%"), 10, 0, false},
		"-5% keeps none":                               {text("-5%"), 10, 0, false},
		"a numeric string is an error":                 {text("5"), 10, 0, true},
		"not a number is an error":                     {text("NaN%"), 10, 0, true},
		"infinity is an error":                         {text("Inf%"), 10, 0, true},
		"too large a number is an error":               {text("1e999%"), 10, 0, true},
		"words are an error":                           {text("half%"), 10, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ResolvePartition(&tc.value, tc.replicas)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("Partition(%s, %d) = %d, %v; want %d, failing %v", tc.value.String(), tc.replicas, got, err, tc.want, tc.fails)
			}
		})
	}
	if got, err := ResolvePartition(nil, 10); got != 0 || err != nil {
		t.Errorf("no partition keeps %d, %v; want 0", got, err)
	}
}

// The percentage that a partition is given never keeps all of several pods but
// for the one text that says so, and never keeps less than its share.
func TestPartitionNeverKeepsAllByRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(2, 5000).Draw(t, "replicas")
		percent := rapid.Float64Range(0, 99.9999).Draw(t, "percent")
		v := intstr.FromString(rapid.SampledFrom([]string{format(percent), format(math.Floor(percent))}).Draw(t, "text"))
		got, err := ResolvePartition(&v, replicas)
		if err != nil {
			t.Fatal(err)
		}
		if got < 0 || got >= replicas {
			t.Fatalf("%s of %d keeps %d", v.StrVal, replicas, got)
		}
		if float64(got) < math.Floor(percent)*float64(replicas)/100-1 {
			t.Fatalf("%s of %d keeps only %d", v.StrVal, replicas, got)
		}
	})
}

func TestPercentRoundsUpAtMostOneMoreThanDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(0, 100_000).Draw(t, "total")
		v := intstr.FromString(format(float64(rapid.IntRange(0, 200).Draw(t, "percent"))))
		up, errUp := ResolvePercent(v, total, true)
		down, errDown := ResolvePercent(v, total, false)
		if errUp != nil || errDown != nil {
			t.Fatal(errUp, errDown)
		}
		if up < down || up > down+1 {
			t.Fatalf("%s of %d is %d rounded up and %d rounded down", v.StrVal, total, up, down)
		}
	})
}

func format(percent float64) string { return strconv.FormatFloat(percent, 'f', -1, 64) + "%" }
