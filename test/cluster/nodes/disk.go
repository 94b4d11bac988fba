// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// minFreeDisk is what the disk must have free for real nodes, in bytes. Three nodes with the images of the
// end-to-end tests write 1 to 2 GiB; a kubelet without room refuses all pods, and whoever waits for them waits in vain.
const minFreeDisk = 4 << 30

// CheckDisk refuses a disk that is too full for real nodes which keep their files in path.
func CheckDisk(path string) error { return checkDisk(path, minFreeDisk) }

func checkDisk(path string, needed uint64) error {
	var disk unix.Statfs_t
	at := path
	for {
		err := unix.Statfs(at, &disk)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return fmt.Errorf("looking for room on the disk of %s: %w", path, err)
		}
		at = filepath.Dir(at)
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < needed { //nolint:gosec // the size of a block is positive
		return fmt.Errorf("the disk of %s has %d MiB free, and real nodes need %d MiB: free some, for example with `go clean -cache`", path, free>>20, needed>>20)
	}
	return nil
}
