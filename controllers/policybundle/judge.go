// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"errors"
	"slices"
	"time"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// FilesVerdict is what is known of the files of a bundle before the bundle is stored.
type FilesVerdict struct {
	// Problems are why the controller would refuse the files, whatever other bundles there are. They are bounded as those of a status.
	Problems []FileProblem
	// Conflicts are packages that other bundles have now.
	Conflicts []FileProblem
	// Tests is true if the bundle has tests. They were not run.
	Tests bool
	// Unchecked says why the files could not be checked now; empty if they were.
	Unchecked string
}

// FileProblem is a problem of a file.
type FileProblem struct {
	// File is the path of the file; empty if the problem is about all files.
	File string
	// Text is file:row:col, the code and the message, as in a status.
	Text string
}

// longestTurn is how long JudgeFiles waits while another bundle is checked.
const longestTurn = 2 * time.Second

// JudgeFiles checks the inline files of a bundle as the controller would, up to the last stage that depends on the files alone. It
// returns when ctx is done, also if the check has not ended. One bundle is checked at a time in a process, by JudgeFiles or for its
// status, since each check may take all memory that is left. It checks a few bundles of a namespace in a row, and later one every
// few seconds.
func (p *Publisher) JudgeFiles(ctx context.Context, b policy.AnyPolicyBundle) FilesVerdict {
	if !p.judged.allowCheck(b.GetNamespace(), time.Now()) {
		return FilesVerdict{Unchecked: "bundles of this namespace were checked several times in the last seconds"}
	}
	waiting, cancel := context.WithTimeout(ctx, longestTurn)
	defer cancel()
	release, err := p.turn.acquireTurn(waiting, b.GetNamespace(), func() {})
	if err != nil {
		return FilesVerdict{Unchecked: "another bundle is being checked"}
	}
	checked := make(chan FilesVerdict, 1)
	recovery.Go("policybundle-judge", func() {
		defer release() // after the check, which the request does not wait for without end
		checked <- p.checkFiles(ctx, b)
	}, func(error) { checked <- FilesVerdict{Unchecked: "the check failed"} })
	select {
	case v := <-checked:
		return v
	case <-ctx.Done():
		return FilesVerdict{Unchecked: tookTooLong}
	}
}

const tookTooLong = "the check takes longer than a request may"

func (p *Publisher) checkFiles(ctx context.Context, b policy.AnyPolicyBundle) FilesVerdict {
	found, err := fetch.PackInline(inlineFiles(b.DesiredSpec()))
	if err != nil {
		return FilesVerdict{Problems: fileProblems(err)}
	}
	candidate, err := policyhost.Read(b, found.Archive, nil)
	if err != nil {
		return FilesVerdict{Problems: fileProblems(err)}
	}
	v := FilesVerdict{Tests: len(candidate.Tests) > 0}
	_, err = p.Gate.CheckFiles(ctx, candidate)
	var refused *gate.RefusedError
	var memory *gate.NoMemoryError
	switch {
	case errors.As(err, &refused) && refused.Stage != gate.Limits:
		v.Problems = fileProblems(refused.Problems)
		return v
	case ctx.Err() != nil:
		v.Unchecked = tookTooLong
	case refused != nil: // the machine may be busy; with more time and memory they may pass
		v.Unchecked = "the check takes more time or memory than there is now"
	case errors.As(err, &memory):
		v.Unchecked = memory.Error()
	case err != nil:
		v.Unchecked = "the check failed"
	}
	key := keyOf(b)
	beside := slices.Concat(p.Host.PeerBundles(key), p.Host.WithheldBeside(key))
	if err := append(beside, candidate).CheckConflicts(); err != nil {
		v.Conflicts = fileProblems(err)
	}
	return v
}

// ValidateSource returns a fetch.SourceError if no fetch of the source of a bundle can succeed. It sends no request.
func ValidateSource(b policy.AnyPolicyBundle) error {
	return fetch.ValidateSource(newSource(b.GetNamespace(), b.DesiredSpec()))
}

// fileProblems are the problems that an error has, or the error itself.
func fileProblems(err error) []FileProblem {
	var problems module.Problems
	if !errors.As(err, &problems) {
		return []FileProblem{{Text: decision.TruncateText(err.Error(), longest)}}
	}
	out := make([]FileProblem, 0, most+1)
	for i, line := range problemLines(problems) {
		p := FileProblem{Text: decision.TruncateText(line, longest)}
		if i < most && i < len(problems) {
			p.File = problems[i].File
		}
		out = append(out, p)
	}
	return out
}
