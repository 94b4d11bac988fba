// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func readAsset(t *testing.T, name string) string {
	t.Helper()
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWhatPagesShareAsksNoOtherHost(t *testing.T) {
	for _, name := range []string{"site.css", "site.js", "page.html", "file.html"} {
		text := readAsset(t, name)
		for _, address := range []string{"://", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML", "eval("} {
			if strings.Contains(text, address) {
				t.Errorf("%s has %s", name, address)
			}
		}
	}
}

var variable = regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`)

// Contrast as WCAG 2 defines it: 4.5 for text, 3 for what shows the focus.
func TestColoursHaveTheContrastOfAA(t *testing.T) {
	schemes := regexp.MustCompile(`:root \{[^}]*\}`).FindAllString(readAsset(t, "site.css"), -1)
	if len(schemes) != 3 {
		t.Fatalf("there are %d schemes, not those of light, dark and paper", len(schemes))
	}
	colours := map[string]string{}
	for _, scheme := range schemes {
		for _, m := range variable.FindAllStringSubmatch(scheme, -1) {
			colours[m[1]] = m[2]
		}
		for _, pair := range []struct {
			front, back string
			least       float64
		}{
			{"text", "page", 4.5}, {"text", "side", 4.5}, {"text", "code", 4.5}, {"text", "current", 4.5}, {"text", "found", 4.5},
			{"link", "page", 4.5}, {"link", "side", 4.5}, {"link", "code", 4.5}, {"link", "current", 4.5},
			{"muted", "page", 4.5}, {"muted", "side", 4.5}, {"muted", "code", 4.5}, {"muted", "current", 4.5}, {"muted", "found", 4.5},
			{"focus", "page", 3}, {"focus", "side", 3}, {"focus", "code", 3}, {"focus", "current", 3},
		} {
			if got := contrastOf(t, colours[pair.front], colours[pair.back]); got < pair.least {
				t.Errorf("%s on %s has a contrast of %.2f in %s", pair.front, pair.back, got, scheme)
			}
		}
	}
}

func contrastOf(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminanceOf(t, a), luminanceOf(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminanceOf(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(colour[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		part := float64(value) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum
}
