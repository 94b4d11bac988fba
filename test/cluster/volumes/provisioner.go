// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// A Provisioner makes, resizes and removes the volumes of claims.
type Provisioner struct {
	client  kubernetes.Interface
	dir     string
	log     *log.Logger
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
}

// Run serves claims until ctx ends. Volumes are directories below dir.
func Run(ctx context.Context, client kubernetes.Interface, dir string, logger *log.Logger) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := factory.Core().V1().PersistentVolumeClaims()
	persistent := factory.Core().V1().PersistentVolumes()
	classes := factory.Storage().V1().StorageClasses()
	p := &Provisioner{
		client: client, dir: dir, log: logger,
		claims: claims.Lister(), volumes: persistent.Lister(), classes: classes.Lister(),
	}
	// One pending signal is enough, whatever happened: a round looks at
	// everything, of which there is never much.
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), persistent.Informer(), classes.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching claims and volumes: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if err := p.round(ctx); err != nil {
			p.log.Print(err)
			// Again soon: what failed may not change by itself.
			time.AfterFunc(time.Second, signal)
		}
	}
}

func (p *Provisioner) round(ctx context.Context) error {
	var problems []error
	claims, err := p.claims.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	for _, claim := range claims {
		if !p.ours(claim) {
			continue
		}
		if claim.Status.Phase == corev1.ClaimBound {
			problems = append(problems, p.resize(ctx, claim))
		} else if claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil {
			problems = append(problems, p.provision(ctx, claim))
		}
	}
	volumes, err := p.volumes.List(labels.Everything())
	if err != nil {
		return errors.Join(append(problems, fmt.Errorf("listing volumes: %w", err))...)
	}
	for _, volume := range volumes {
		problems = append(problems, p.reclaim(ctx, volume))
	}
	return errors.Join(problems...)
}

func (p *Provisioner) ours(claim *corev1.PersistentVolumeClaim) bool {
	// The volume controller marks the claims that it leaves to others. Binding
	// one before would make its mark fail, and an event say so.
	if claim.Spec.StorageClassName == nil || claim.Annotations[forProvisioner] != provisioner {
		return false
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	return err == nil && class.Provisioner == provisioner
}

// reclaim removes a volume whose claim is gone.
func (p *Provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[provisionedBy] != provisioner || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.DeletionTimestamp != nil {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(p.dir, volume.Name)); err != nil {
		return fmt.Errorf("removing the directory of %s: %w", volume.Name, err)
	}
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the volume %s: %w", volume.Name, err)
	}
	return nil
}
