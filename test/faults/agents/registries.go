// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/cluster/registry"
	"github.com/regatta-sh/regatta/test/faults/daemon"
	"github.com/regatta-sh/regatta/test/faults/hub"
)

// complaints are what a node must say of an image that it did not get.
var complaints = map[string]string{
	"401": `401|(?i)authorization failed`, "429": `429|Too Many Requests`, "500": `500|Internal Server Error`,
	hub.Hang: `(?i)deadline exceeded`, hub.Truncate: `unexpected EOF|EOF|short read`,
}

// registries tries images that are hard to get, all at the same time.
func (w *world) registries(ctx context.Context, d *daemon.Daemon) (err error) {
	h, err := hub.Serve(ctx, w.cluster, d.Node)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := d.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.End(context.WithoutCancel(ctx))) }()
	var all sync.WaitGroup
	var mu sync.Mutex
	var wrong []error
	run := func(broken, image, complaint string, retries int32) {
		w.expect(broken, "a pull")
		all.Go(func() {
			j := &job{world: w, name: fmt.Sprintf("pull-%d", w.next()), node: d.Node, image: image, timeout: 4, retries: retries}
			if err := w.hard(ctx, j, broken, complaint); err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, err)
			}
		})
	}
	for _, fault := range hub.Faults() {
		broken := "registry answers " + fault
		switch fault {
		case hub.Hang:
			broken = "registry hangs"
		case hub.Truncate:
			broken = "registry serves truncated layers"
		}
		run(broken+" for "+hub.Awhile.String(), hub.Image(fault, true), "", 4)
		run(broken+" for good", hub.Image(fault, false), complaints[fault], 1)
	}
	run("image does not exist", registry.AbsentHost+"/web:v1", `(?i)not found`, 1)
	all.Wait()
	return errors.Join(wrong...)
}

// hard pulls an image that is hard to get. With a complaint, the node must give it up and say why.
func (w *world) hard(ctx context.Context, j *job, broken, complaint string) error {
	if err := j.begin(ctx); err != nil {
		return err
	}
	start := time.Now()
	want := pulled
	if complaint != "" {
		want = j.refused()
	}
	if err := j.ends(ctx, patience, want); err != nil {
		w.note(broken, "a pull", time.Since(start), "", err.Error())
		return ctx.Err()
	}
	took := time.Since(start)
	tag, err := j.tag(ctx)
	if err != nil {
		return err
	}
	became, text := string(tag.Phase), ""
	if complaint == "" {
		if err := j.still(ctx); err != nil {
			text = err.Error()
		}
	} else {
		why := regexp.MustCompile(complaint).FindString(tag.Message)
		became += fmt.Sprintf(", says %q", strings.TrimSpace(why))
		if tag.Phase != kruise.ImagePhaseFailed || why == "" {
			text = fmt.Sprintf("the NodeImage says %s, %q, want a message with %s", tag.Phase, tag.Message, complaint)
		}
	}
	w.note(broken, "a pull", took, became, text)
	return j.remove(ctx)
}
