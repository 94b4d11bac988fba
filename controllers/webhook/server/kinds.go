// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/advancedcronjob"
	"github.com/regatta-sh/regatta/controllers/webhook/broadcastjob"
	"github.com/regatta-sh/regatta/controllers/webhook/cloneset"
	"github.com/regatta-sh/regatta/controllers/webhook/containerrecreaterequest"
	"github.com/regatta-sh/regatta/controllers/webhook/daemonset"
	"github.com/regatta-sh/regatta/controllers/webhook/ephemeraljob"
	"github.com/regatta-sh/regatta/controllers/webhook/imagelistpulljob"
	"github.com/regatta-sh/regatta/controllers/webhook/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/webhook/nodeimage"
	"github.com/regatta-sh/regatta/controllers/webhook/nodepodprobe"
	"github.com/regatta-sh/regatta/controllers/webhook/persistentpodstate"
	"github.com/regatta-sh/regatta/controllers/webhook/podprobemarker"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/webhook/policybundle"
	"github.com/regatta-sh/regatta/controllers/webhook/resourcedistribution"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/webhook/sidecarset"
	"github.com/regatta-sh/regatta/controllers/webhook/statefulset"
	"github.com/regatta-sh/regatta/controllers/webhook/uniteddeployment"
	"github.com/regatta-sh/regatta/controllers/webhook/workloadspread"
)

// kindWebhooks returns the webhooks of all kinds, by group and kind in the form of their paths. They read
// other objects with the client, and write only dry runs.
func kindWebhooks(reader client.Client, templates podtemplate.Settings, options Options) map[string]admit.Webhooks {
	configuration := rules.Configuration{Reader: reader, Namespace: options.Namespace}
	return map[string]admit.Webhooks{
		"apps-kruise-io-cloneset": cloneset.New(cloneset.Options{
			Pods: reader, Templates: templates, KeepTemplates: options.KeepTemplates,
		}),
		"apps-kruise-io-sidecarset": sidecarset.New(sidecarset.Options{
			Reader: reader, Configuration: configuration, Templates: templates,
			KeepTemplates: options.KeepTemplates, PatchAnyMetadata: options.PatchAnyMetadata, Await: options.AwaitSidecarSet,
		}),
		"apps-kruise-io-uniteddeployment":         uniteddeployment.New(templates),
		"apps-kruise-io-workloadspread":           workloadspread.New(reader, configuration, templates, options.NoSpreads, options.AwaitObject),
		"apps-kruise-io-persistentpodstate":       persistentpodstate.New(reader, configuration, options.AwaitObject),
		"apps-kruise-io-resourcedistribution":     resourcedistribution.New(reader, options.Namespace),
		"apps-kruise-io-advancedcronjob":          advancedcronjob.New(templates),
		"apps-kruise-io-broadcastjob":             broadcastjob.New(templates, options.KeepTemplates),
		"apps-kruise-io-containerrecreaterequest": containerrecreaterequest.New(reader),
		"apps-kruise-io-daemonset":                daemonset.New(templates),
		"apps-kruise-io-ephemeraljob":             ephemeraljob.New(),
		"apps-kruise-io-imagelistpulljob":         imagelistpulljob.New(),
		"apps-kruise-io-imagepulljob":             imagepulljob.New(),
		"apps-kruise-io-nodeimage":                nodeimage.New(),
		"apps-kruise-io-nodepodprobe":             nodepodprobe.New(),
		"apps-kruise-io-podprobemarker":           podprobemarker.New(),
		"apps-kruise-io-statefulset":              statefulset.New(reader, templates, options.KeepTemplates, options.StatefulSets),
		"policy-kruise-io-clusterpolicybundle":    policybundle.NewPlatform(options.Bundles),
		"policy-kruise-io-policybundle":           policybundle.NewTenant(options.Bundles),
		"policy-kruise-io-podunavailablebudget":   podunavailablebudget.New(reader, options.NoBudgets),
	}
}

// addWebhooks adds the webhooks of a kind at their paths (PL-11).
func addWebhooks(handlers map[string]http.Handler, name string, webhooks admit.Webhooks, gates func(featuregate.Feature) bool) {
	if d := webhooks.MutatingHandler(); d != nil {
		handlers["/mutate-"+name] = &webhook.Admission{Handler: d}
	}
	validator := webhooks.ValidatingHandler()
	if gates != nil {
		validator = gatedkinds.RefuseCreation(validator, gates)
	}
	handlers["/validate-"+name] = &webhook.Admission{Handler: validator}
}
