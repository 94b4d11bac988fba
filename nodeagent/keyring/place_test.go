// SPDX-License-Identifier: Apache-2.0

package keyring

import "testing"

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, image string
		want           bool
	}{
		{"registry.example.com", "registry.example.com/a/b", true},
		{"registry.example.com", "example.com/a", false},
		{"*.example.com", "registry.example.com/a", true},
		{"*.example.com", "a.b.example.com/a", false},
		{"reg*.example.com", "registry.example.com/a", true},
		{"*.dkr.ecr.*.amazonaws.com", "123.dkr.ecr.eu-west-1.amazonaws.com/a", true},
		{"registry.example.com:5000", "registry.example.com:5000/a", true},
		{"registry.example.com", "registry.example.com:5000/a", false},
		{"registry.example.com:5000", "registry.example.com/a", false},
		{"registry.example.com/team", "registry.example.com/team/app", true},
		{"registry.example.com/team", "registry.example.com/other/app", false},
		{"https://registry.example.com", "registry.example.com/a", true},
		{"docker.io", "nginx", true},
		{"docker.io/library", "nginx", true},
		{"docker.io/library", "ann/nginx", false},
	} {
		pattern, err := ParsePattern(tc.pattern)
		if err != nil {
			t.Fatal(err)
		}
		full, _, err := ImageOf(tc.image)
		if err != nil {
			t.Fatal(err)
		}
		at, err := ParsePlace(full)
		if err != nil {
			t.Fatal(err)
		}
		if got := pattern.MatchesPlace(at); got != tc.want {
			t.Errorf("%s matches %s: %t", tc.pattern, tc.image, got)
		}
	}
}
