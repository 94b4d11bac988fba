// SPDX-License-Identifier: Apache-2.0

// Package pages reads and checks the Markdown pages of the repository: their manifests, their links, and that pages in two
// languages say the same.
package pages

import "regexp"

// Manifest is a yaml block of a page whose first line is a comment with the name of its file, such as "# web.yaml".
type Manifest struct{ Name, Text string }

var manifest = regexp.MustCompile("(?ms)^```yaml\n# ([a-z0-9-]+\\.yaml)\n(.*?)^```$")

// ListManifests returns the manifests of a page, in its order.
func ListManifests(page string) (out []Manifest) {
	for _, found := range manifest.FindAllStringSubmatch(page, -1) {
		out = append(out, Manifest{Name: found[1], Text: found[2]})
	}
	return out
}
