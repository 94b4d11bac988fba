// SPDX-License-Identifier: Apache-2.0

// Command generate writes the names of the flags of the manager and of the node agent into files of the chart, which checks extraArgs by
// them, the table of values into its page, and what Artifact Hub shows into Chart.yaml. It is run in the root of the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/nodeagent/agent"
)

func main() {
	chart := filepath.Join("charts", "kruise")
	if err := errors.Join(writeFlags(filepath.Join(chart, "files")), writeReadme(chart), writeMetadata(chart)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeFlags writes the flags of each program into a folder.
func writeFlags(folder string) error {
	ofManager, err := manager.NewOptions()
	if err != nil {
		return err
	}
	ofAgent, err := agent.NewOptions()
	if err != nil {
		return err
	}
	for name, options := range map[string]interface{ AddFlags(*pflag.FlagSet) }{"manager-flags.txt": ofManager, "daemon-flags.txt": ofAgent} {
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		options.AddFlags(flags)
		var lines strings.Builder
		flags.VisitAll(func(f *pflag.Flag) { lines.WriteString(f.Name + "\n") }) // sorted
		if err := os.WriteFile(filepath.Join(folder, name), []byte(lines.String()), 0o644); err != nil {
			return fmt.Errorf("writing the flags: %w", err)
		}
	}
	return nil
}
