// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long nothing must change before the files are read: editors write a file in several
// steps.
const quiet = 100 * time.Millisecond

// watchFolder calls run, and again after each change below a folder, until the context ends.
func watchFolder(ctx context.Context, folder string, run func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", folder, err)
	}
	defer w.Close()
	for {
		// Folders are added each time, since there may be new ones. Folders that are watched already stay so.
		if err := addFolders(w, folder); err != nil {
			return fmt.Errorf("watching %s: %w", folder, err)
		}
		run()
		if changed, err := waitForChange(ctx, w); err != nil || !changed {
			return err
		}
	}
}

func addFolders(w *fsnotify.Watcher, folder string) error {
	return filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return w.Add(p)
	})
}

// waitForChange waits until something changed and then nothing did for a while. It is
// false when the context ends.
func waitForChange(ctx context.Context, w *fsnotify.Watcher) (bool, error) {
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-settled:
			return true, nil
		case e := <-w.Events:
			if !e.Has(fsnotify.Chmod) {
				settled = time.After(quiet)
			}
		case err := <-w.Errors:
			return false, fmt.Errorf("watching: %w", err)
		}
	}
}
