// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// paced has when the status of each job was written last, so that a job with many nodes does not write
// its status for each node.
type paced struct {
	every time.Duration
	mu    sync.Mutex
	at    map[types.UID]time.Time
}

// timeToWrite returns how long to wait before the status of a job is written, 0 if it is to be written
// now. A change that is more than progress is written at once.
func (p *paced) timeToWrite(job *kruise.ImagePullJob, s kruise.ImagePullJobStatus, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.at[job.UID]
	if !ok || equality.Semantic.DeepEqual(job.Status, s) {
		return 0
	}
	was := *job.Status.DeepCopy()
	was.Active, was.Succeeded, was.Failed, was.FailedNodes, was.Message = s.Active, s.Succeeded, s.Failed, s.FailedNodes, s.Message
	s = *s.DeepCopy()
	kstatus.RemoveConditions(&was)
	kstatus.RemoveConditions(&s)
	if !equality.Semantic.DeepEqual(was, s) {
		return 0
	}
	return max(last.Add(p.every).Sub(now), 0)
}

// recordWrite notes that the status of a job is up to date.
func (p *paced) recordWrite(job types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[types.UID]time.Time{}
	}
	p.at[job] = now
}

func (p *paced) forgetJob(job types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, job)
}
