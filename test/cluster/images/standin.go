// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Scripts of the stand-ins. The first process of a container ignores signals
// that it has not asked for, so both ask for TERM: else every deletion of a pod
// would take its whole grace period.
const (
	serveScript = `#!/bin/sh
trap 'exit 0' TERM INT
httpd -f -p "${PORT:-80}" -h /www &
while :; do sleep 3600 & wait $!; done
`
	pauseScript = `#!/bin/sh
trap 'exit 0' TERM INT
while :; do sleep 86400 & wait $!; done
`
	bashScript = `#!/bin/sh
exec /bin/sh "$@"
`
)

// A StandIn makes images that stand in for any other: BusyBox, answering HTTP
// requests on port 80 unless told to do something else.
type StandIn struct {
	layer v1.Layer
}

// FindBusyBox returns the path of a statically linked BusyBox.
func FindBusyBox() (string, error) {
	for _, candidate := range []string{"/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox"} {
		if _, err := os.Stat(candidate); err != nil {
			continue
		}
		if checkStatic(candidate) == nil {
			return candidate, nil
		}
	}
	return "", errors.New("no statically linked busybox on this machine; Debian has it in busybox-static")
}

// busyBox are the files of BusyBox, a link for each of its commands among them.
func busyBox(from string) ([]file, error) {
	content, err := os.ReadFile(from)
	if err != nil {
		return nil, fmt.Errorf("reading busybox: %w", err)
	}
	listed, err := exec.Command(from, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking busybox what it can do: %w", err)
	}
	files := []file{{path: "bin/busybox", mode: 0o755, content: content}}
	for _, applet := range bytes.Fields(listed) {
		files = append(files, file{path: path.Join("bin", string(applet)), link: "/bin/busybox"})
	}
	return files, nil
}

// NewStandIn reads BusyBox from the given path, which must run on this machine.
func NewStandIn(busybox string) (*StandIn, error) {
	commands, err := busyBox(busybox)
	if err != nil {
		return nil, err
	}
	files := append(skeleton(),
		file{path: "bin/serve", mode: 0o755, content: []byte(serveScript)},
		file{path: "bin/pause", mode: 0o755, content: []byte(pauseScript)},
		file{path: "bin/bash", mode: 0o755, content: []byte(bashScript)},
		file{path: "usr/bin/", mode: 0o755},
		file{path: "usr/bin/env", link: "/bin/busybox"},
		file{path: "www/index.html", mode: 0o644, content: []byte("ok\n")},
		file{path: "root/", mode: 0o700},
		file{path: "var/run/", mode: 0o755},
	)
	layer, err := newLayer(append(files, commands...))
	if err != nil {
		return nil, err
	}
	return &StandIn{layer: layer}, nil
}

// Image returns the stand-in for an image. Every tag has an image ID of its
// own, like releases of real images, except that the tags same-digest-a,
// same-digest-b and so on of one repository are one image.
func (s *StandIn) Image(repository, tag string) (v1.Image, error) {
	command := "/bin/serve"
	if path.Base(repository) == "pause" {
		// It shares the network of the pod's containers: it must not listen.
		command = "/bin/pause"
	}
	if strings.HasPrefix(tag, sameDigest) {
		tag = sameDigest
	}
	return newImage(s.layer, v1.Config{
		Cmd: []string{command}, WorkingDir: "/",
		Env:    []string{"PATH=/bin:/usr/bin"},
		Labels: map[string]string{"sh.regatta.stand-in": repository + ":" + tag},
	})
}

const sameDigest = "same-digest-"
