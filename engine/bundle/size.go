// SPDX-License-Identifier: Apache-2.0

package bundle

// SourceBytes is how long the sources of the modules, of their tests and of the data are together.
func (b *Bundle) SourceBytes() (sum int) {
	for _, text := range b.Files {
		sum += len(text)
	}
	return sum
}
