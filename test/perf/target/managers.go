// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	"github.com/regatta-sh/regatta/test/cluster/process"
)

// Managers are the processes of the managers that run beside the local cluster of this folder, at least one.
func Managers(dir string) ([]int, error) {
	running, err := process.Find(dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, one := range running {
		if one.Executable == manager {
			pids = append(pids, one.PID)
		}
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("finding the managers: no process of %s runs %s", dir, manager)
	}
	return pids, nil
}
