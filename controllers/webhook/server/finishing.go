// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// NewGracefulServer is a server that completes its requests when it is stopped. The server of controller-runtime waits for requests,
// but cancels their contexts, so that calls fail and a pod is refused only because a manager is upgraded. The webhooks answer before
// the API server gives up.
func NewGracefulServer(server webhook.Server) webhook.Server { return &finishing{Server: server} }

type finishing struct {
	webhook.Server
	running atomic.Pointer[context.Context]
}

// Register implements webhook.Server.
func (f *finishing) Register(path string, hook http.Handler) {
	hook = AnswerInTime(hook)
	f.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
		defer cancel(nil)
		defer context.AfterFunc(r.Context(), func() {
			if !f.isStopping() { // the client has closed the connection
				cancel(context.Cause(r.Context()))
			}
		})()
		hook.ServeHTTP(w, r.WithContext(ctx))
	}))
}

func (f *finishing) isStopping() bool {
	running := f.running.Load()
	return running != nil && (*running).Err() != nil
}

// Start implements webhook.Server.
func (f *finishing) Start(ctx context.Context) error {
	f.running.Store(&ctx)
	return f.Server.Start(ctx)
}
