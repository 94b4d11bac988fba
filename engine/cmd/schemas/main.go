// SPDX-License-Identifier: Apache-2.0

// Command schemas writes the JSON schemas of all decision points below a folder,
// which is policies/schemas unless another is named. It is run in the root of
// the repository.
package main

import (
	"fmt"
	"os"

	"github.com/regatta-sh/regatta/engine/schema"
)

func main() {
	folder := "policies/schemas"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	comments := schema.WithComments("github.com/regatta-sh/regatta", "./engine/decision")
	if err := schema.Write(folder, comments); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
