// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// ManagerUser returns the user name in requests of a manager that runs in a namespace.
func ManagerUser(namespace string) string {
	return "system:serviceaccount:" + namespace + ":kruise-manager"
}

// NewUpdateCheck returns a check whether budgets allow a pod to be updated in place. Regatta's
// controllers call it with the account that their own requests come from. The hold is why the pod may
// not be updated, nil if it may (CS-11). Without an answer in time the check returns an error.
func (l *Accountant) NewUpdateCheck(account string, recent *protection.Recent, patience time.Duration) func(context.Context, *corev1.Pod) (*decision.Hold, error) {
	return func(ctx context.Context, pod *corev1.Pod) (*decision.Hold, error) {
		asked := &protection.Asked{
			Request: points.Request{UID: "in-place-update-" + string(pod.UID), Operation: points.Update, User: points.User{Name: account}},
			Object:  points.Object{Version: "v1", Resource: "pods"},
		}
		asked.SetObject(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		got, err := l.DecideRequest(ctx, Request{Asked: asked, Recent: recent.CountDeletes(asked), Pod: pod})
		if err != nil || got.Output.Allow {
			return nil, err
		}
		return &got.Output.Reasons[0], nil
	}
}
