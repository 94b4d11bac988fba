package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag --format: one of a list.
type choice struct {
	value string
	of    []string
}

// formats makes a choice of which the first is meant where none is made.
func formats(of ...string) *choice { return &choice{of[0], of} }

func (c *choice) flag(cmd *cobra.Command) {
	cmd.Flags().Var(c, "format", "how to print: "+strings.Join(c.of, ", "))
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "format" }

func (c *choice) Set(v string) error {
	if !slices.Contains(c.of, v) {
		return fmt.Errorf("it is one of %s", strings.Join(c.of, ", "))
	}
	c.value = v
	return nil
}
