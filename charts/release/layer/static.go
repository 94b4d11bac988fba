// SPDX-License-Identifier: Apache-2.0

package layer

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
)

// RequireStatic refuses a program that asks for a loader. Without one the kernel
// only says "no such file or directory", about a file that is plainly there.
func RequireStatic(program string) error {
	binary, err := elf.Open(program)
	if err != nil {
		var missing *fs.PathError
		if errors.As(err, &missing) {
			return fmt.Errorf("opening the program: %w", err)
		}
		return fmt.Errorf("%s is not a Linux program: %w", program, err)
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically; build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}
