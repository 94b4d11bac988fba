// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// files copies the secret to disk. A mounted secret would do, but the kubelet
// takes up to a minute and a half to show what was just written.
type files struct {
	config Config
	reader client.Reader
	state  *Certificates
}

const (
	syncEvery = 2 * time.Second
	// settledEvery is how long the server may keep a certificate that the API server does not trust any
	// more, after a new CA.
	settledEvery = 10 * time.Second
)

// NeedLeaderElection is false: every replica serves webhooks.
func (f *files) NeedLeaderElection() bool { return false }

// Start copies until ctx is done, more often before the first time. The webhook
// server reloads changed files by itself.
func (f *files) Start(ctx context.Context) error {
	every := syncEvery
	told := ""
	for {
		err := f.syncFiles(ctx)
		f.state.setNotReadyError(err)
		switch {
		case err == nil && every == syncEvery:
			every = settledEvery
			if f.config.External {
				close(f.state.ready)
			}
		case err != nil && ctx.Err() == nil && err.Error() != told:
			ctrl.LoggerFrom(ctx).Error(err, "The certificates of the webhooks are not in order")
		}
		told = ""
		if err != nil {
			told = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func (f *files) syncFiles(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := f.reader.Get(ctx, f.config.Secret, secret); err != nil {
		return fmt.Errorf("reading secret %s: %w", f.config.Secret, err)
	}
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[name]) == 0 {
			return fmt.Errorf("reading secret %s: it has no %s yet", f.config.Secret, name)
		}
	}
	if f.config.External {
		if err := f.config.verifyTrusted(ctx, f.reader, secret.Data[corev1.TLSCertKey]); err != nil {
			return err
		}
	} else if err := f.config.verifyOwnCertificate(secret); err != nil {
		return err
	}
	if err := os.MkdirAll(f.config.Dir, 0o700); err != nil {
		return fmt.Errorf("making the certificate directory: %w", err)
	}
	for _, name := range []string{"ca.crt", corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if err := replaceFile(filepath.Join(f.config.Dir, name), secret.Data[name]); err != nil {
			return err
		}
	}
	f.config.Expiry.recordChain(secret.Data[corev1.TLSCertKey])
	return nil
}

// replaceFile writes a file atomically: a reader sees the old file or the new one.
func replaceFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("writing certificate: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("writing certificate: %w", err)
	}
	return nil
}
