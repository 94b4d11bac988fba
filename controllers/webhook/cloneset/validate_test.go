// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The rules of CS-20 in order. Each case holds in both versions unless it names one.
func TestCreate(t *testing.T) {
	for _, tc := range []struct {
		name     string
		only     string
		change   string
		want     []string
		warnings []string
	}{
		{name: "the least one can say will do", change: `{}`},
		{name: "a name is a DNS subdomain", change: `{metadata: {name: Web}}`, want: []string{`metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		{name: "replicas are not negative", change: `{spec: {replicas: -1}}`, want: []string{`spec.replicas: Invalid value: -1: must be greater than or equal to 0`}},
		{name: "no pods at all are a number too", change: `{spec: {replicas: 0}}`},
		{name: "there is a selector", change: `{spec: {selector: null}}`, want: []string{`spec.selector: Required value`}},
		{name: "a selector selects something", change: `{spec: {selector: {matchLabels: null}}}`, want: []string{`spec.selector: Invalid value: "<none>": empty selector is invalid for cloneset`}},
		{name: "a selector is well formed", change: `{spec: {selector: {matchExpressions: [{key: app, operator: In}]}}}`, want: []string{"spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"}},
		{name: "a selector selects the pods", change: `{spec: {template: {metadata: {labels: {app: other}}}}}`, want: []string{"spec.template.metadata.labels: Invalid value: \"app=other\": `selector` does not match template `labels`"}},
		{name: "a template is well formed", change: `{spec: {template: {spec: {containers: [{name: main}]}}}}`, want: []string{`spec.template.spec.containers[0].image: Required value`}},
		{name: "a claim template can be mounted", change: `{spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {containers: [{name: main, image: x, volumeMounts: [{name: data, mountPath: /x}, {name: gone, mountPath: /z}]}]}}}}`, want: []string{`spec.template.spec.containers[0].volumeMounts[1].name: Not found: "gone"`}},
		{name: "a misspelt field of a template is a warning", change: `{spec: {template: {spec: {dnsPolice: Default, containers: [{name: main, image: x, imagee: z}]}}}}`, warnings: []string{`unknown field "spec.template.spec.containers[0].imagee"`, `unknown field "spec.template.spec.dnsPolice"`}},
		{name: "pods run for ever", change: `{spec: {template: {spec: {restartPolicy: OnFailure, activeDeadlineSeconds: 5}}}}`, want: []string{
			`spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"`,
			`spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in cloneset is not Supported`}},
		{name: "an unknown restart policy is reported once", change: `{spec: {template: {spec: {restartPolicy: Sometimes}}}}`, want: []string{`spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"`}},
		{name: "a pod is deleted once", change: `{spec: {scaleStrategy: {podsToDelete: [web-mine, web-other, web-mine]}}}`, want: []string{`spec.scaleStrategy.podsToDelete[2]: Duplicate value: "web-mine"`}},
		{name: "a limit of creation is a number or a percentage", change: `{spec: {scaleStrategy: {maxUnavailable: "5"}}}`, want: []string{`spec.scaleStrategy.maxUnavailable: Invalid value: "5": invalid type: string is not a percentage`}},

		{name: "a type is one of two", only: beta, change: `{spec: {updateStrategy: {type: ReCreate}}}`, want: []string{`spec.updateStrategy.type: Unsupported value: "ReCreate": supported values: "RollingUpdate", "OnDelete"`, `spec.updateStrategy.rollingUpdate: Required value`}},
		{name: "a type is one of three", only: alpha, change: `{spec: {updateStrategy: {type: RollingUpdate}}}`, want: []string{`spec.updateStrategy.type: Unsupported value: "RollingUpdate": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`}},
		{name: "OnDelete is of v1beta1", only: beta, change: `{spec: {updateStrategy: {type: OnDelete}}}`},
		{name: "OnDelete is not of v1alpha1", only: alpha, change: `{spec: {updateStrategy: {type: OnDelete}}}`, want: []string{`spec.updateStrategy.type: Unsupported value: "OnDelete": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`}},
		{name: "what OnDelete keeps for later is checked", only: beta, change: `{spec: {updateStrategy: {type: OnDelete, rollingUpdate: {partition: x}}}}`, want: []string{`ROLLING.partition: Invalid value: "x": invalid type: string is not a percentage`}},
		{name: "a policy is one of three", only: beta, change: `{ROLLING: {POLICY: Recreate}}`, want: []string{`spec.updateStrategy.rollingUpdate.podUpdatePolicy: Unsupported value: "Recreate": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`}},

		{name: "a partition takes fractions of a percent", change: `{ROLLING: {partition: 12.5%}}`},
		{name: "a partition is a number or a percentage", change: `{ROLLING: {partition: "5"}}`, want: []string{`ROLLING.partition: Invalid value: "5": invalid type: string is not a percentage`}},
		{name: "a partition is not just any percentage", change: `{ROLLING: {partition: NaN%}}`, want: []string{`ROLLING.partition: Invalid value: "NaN%": must be a percentage such as 20%`}},
		{name: "a partition is not negative", change: `{ROLLING: {partition: -1}}`, want: []string{`ROLLING.partition: Invalid value: -1: must be greater than or equal to 0`}},
		{name: "nor is it below zero percent", change: `{ROLLING: {partition: -1%}}`, want: []string{`ROLLING.partition: Invalid value: "-1%": must be greater than or equal to 0`}},

		{name: "priority goes by weight or by order", change: `{ROLLING: {priorityStrategy: {weightPriority: [{weight: 1, matchSelector: {matchLabels: {a: b}}}], orderPriority: [{orderedKey: a}]}}}`, want: []string{`ROLLING.priorityStrategy: Forbidden: weightPriority and orderPriority can not both be set`}},
		{name: "a weight is 0 to 100", change: `{ROLLING: {priorityStrategy: {weightPriority: [{weight: 0, matchSelector: {matchLabels: {a: b}}}, {weight: 100, matchSelector: {matchLabels: {a: b}}}, {weight: 101, matchSelector: {matchLabels: {a: b}}}, {weight: -1, matchSelector: {matchLabels: {a: b}}}]}}}`, want: []string{
			`ROLLING.priorityStrategy.weightPriority[2].weight: Invalid value: 101: must be in the range 1-100`,
			`ROLLING.priorityStrategy.weightPriority[3].weight: Invalid value: -1: must be in the range 1-100`}},
		{name: "a weight is for some pods", change: `{ROLLING: {priorityStrategy: {weightPriority: [{weight: 1, matchSelector: {}}, {weight: 1, matchSelector: {matchLabels: {"a b": c}}}]}}}`, want: []string{
			`ROLLING.priorityStrategy.weightPriority[0].matchSelector: Required value: an empty selector matches all pods, so it orders none`,
			`ROLLING.priorityStrategy.weightPriority[1].matchSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
		{name: "an order has a key", change: `{ROLLING: {priorityStrategy: {orderPriority: [{orderedKey: a}, {orderedKey: ""}]}}}`, want: []string{`ROLLING.priorityStrategy.orderPriority[1].orderedKey: Required value`}},
		{name: "a scatter term has a key and comes once", change: `{ROLLING: {scatterStrategy: [{key: a, value: b}, {key: "", value: b}, {key: a, value: b}, {key: a, value: c}]}}`, want: []string{
			`ROLLING.scatterStrategy[1].key: Required value`, `ROLLING.scatterStrategy[2]: Duplicate value: "a:b"`}},

		{name: "numbers in quotes are no numbers", change: `{ROLLING: {maxUnavailable: "5", maxSurge: "5"}}`, want: []string{
			`ROLLING.maxUnavailable: Invalid value: "5": invalid type: string is not a percentage`, `ROLLING.maxSurge: Invalid value: "5": invalid type: string is not a percentage`}},
		{name: "budgets are not negative", change: `{ROLLING: {maxUnavailable: -1, maxSurge: -5%}}`, want: []string{
			`ROLLING.maxUnavailable: Invalid value: -1: must be greater than or equal to 0`, `ROLLING.maxSurge: Invalid value: "-5%": must be greater than or equal to 0`}},
		{name: "budgets take whole percentages", change: `{ROLLING: {maxUnavailable: 12.5%, maxSurge: 20%}}`, warnings: []string{`ROLLING.maxUnavailable: "12.5%" is not a whole percentage and counts as 0.`}},
		{name: "InPlaceOnly adds no pod", change: `{ROLLING: {POLICY: InPlaceOnly, maxSurge: 1}}`, want: []string{`ROLLING.maxSurge: Forbidden: maxSurge can not be used with InPlaceOnly, which never adds a pod`}},
		{name: "InPlaceOnly may say that it adds none", change: `{ROLLING: {POLICY: InPlaceOnly, maxSurge: 0%}}`},
		{name: "an update has room to begin", change: `{ROLLING: {maxUnavailable: 0, maxSurge: 0%}}`, want: []string{`ROLLING.maxUnavailable: Invalid value: "0": maxUnavailable and maxSurge should not both be less than 1`}},
		{name: "a surge is room", change: `{ROLLING: {maxUnavailable: 0, maxSurge: 1%}}`},
		{name: "no pods need no room", change: `{spec: {replicas: 0}, ROLLING: {maxUnavailable: 0}}`},

		{name: "a pod to delete is there", only: alpha, change: `{spec: {scaleStrategy: {podsToDelete: [web-mine, web-gone, web-going, web-foreign, web-broken]}}}`, want: []string{
			`spec.scaleStrategy.podsToDelete[1]: Not found: "web-gone"`,
			`spec.scaleStrategy.podsToDelete[2]: Invalid value: "web-going": the pod is being deleted already`,
			`spec.scaleStrategy.podsToDelete[3]: Invalid value: "web-foreign": the pod is not owned by this CloneSet`,
			`spec.scaleStrategy.podsToDelete[4]: Internal error: finding pod web-broken: context deadline exceeded`}},
		{name: "in v1beta1 the controller drops names of no pod", only: beta, change: `{spec: {scaleStrategy: {podsToDelete: [web-gone]}}}`},
		{name: "a deadline is not negative", only: alpha, change: `{spec: {progressDeadlineSeconds: -1}}`, want: []string{`spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0`}},
		{name: "a deadline leaves time to become available", only: alpha, change: `{spec: {progressDeadlineSeconds: 10, minReadySeconds: 10}}`, want: []string{`spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds`}},
		{name: "a deadline that is off need not", only: alpha, change: `{spec: {progressDeadlineSeconds: 2147483647, minReadySeconds: 2147483647}}`},
		{name: "v1beta1 never looked at the deadline", only: beta, change: `{spec: {progressDeadlineSeconds: 10, minReadySeconds: 10}}`},
		{name: "a pre-download has whole, positive numbers", only: beta, change: `{ROLLING: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: -1, imagePreDownloadTimeoutSeconds: -1, imagePreDownloadMinUpdatedReadyPods: -1}}}`, want: []string{
			`ROLLING.inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: -1: must be greater than or equal to 0`,
			`ROLLING.inPlaceUpdateStrategy.imagePreDownloadTimeoutSeconds: Invalid value: -1: must be greater than or equal to 0`,
			`ROLLING.inPlaceUpdateStrategy.imagePreDownloadMinUpdatedReadyPods: Invalid value: -1: must be greater than or equal to 0`}},
		{name: "a pre-download takes no percentage", only: beta, change: `{ROLLING: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 10%}}}`, want: []string{`ROLLING.inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: "10%": must be a number, not a percentage`}},
		{name: "v1alpha1 says that it ignores the pre-download", only: alpha, change: `{ROLLING: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 10%, imagePreDownloadTimeoutSeconds: 1, imagePreDownloadMinUpdatedReadyPods: 1}}}`, warnings: []string{
			`ROLLING.inPlaceUpdateStrategy.imagePreDownloadParallelism: v1alpha1 ignores this field; set the annotation apps.kruise.io/image-predownload-parallelism, or use v1beta1.`,
			`ROLLING.inPlaceUpdateStrategy.imagePreDownloadTimeoutSeconds: v1alpha1 ignores this field; set the annotation apps.kruise.io/image-predownload-timeout-seconds, or use v1beta1.`,
			`ROLLING.inPlaceUpdateStrategy.imagePreDownloadMinUpdatedReadyPods: v1alpha1 ignores this field; set the annotation apps.kruise.io/image-predownload-min-updated-ready-pods, or use v1beta1.`}},
	} {
		for _, version := range versions() {
			if tc.only != "" && tc.only != version {
				continue
			}
			t.Run(tc.name+" in "+version, func(t *testing.T) {
				object := defaulted(t, &Defaulter{}, version, typed(t, version, tc.change), nil)
				errs, warnings := findingsOf(t, &Validator{Pods: pods{}}, version, object, nil)
				compare(t, version, tc.want, errs)
				compare(t, version, tc.warnings, warnings)
			})
		}
	}
}

func compare(t *testing.T, version string, want, got []string) {
	t.Helper()
	var placed []string
	for _, text := range want {
		placed = append(placed, places(version, text))
	}
	if diff := cmp.Diff(placed, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithoutDefaultsSomeFieldsAreMissing(t *testing.T) {
	for _, version := range versions() {
		errs, _ := findingsOf(t, &Validator{Pods: pods{}}, version, typed(t, version, `{ROLLING: {POLICY: ReCreate}}`, `{spec: {updateStrategy: {type: `+map[string]string{alpha: "ReCreate", beta: "RollingUpdate"}[version]+`}}}`), nil)
		compare(t, version, []string{`ROLLING.partition: Required value`}, errs)
	}
}

func TestUpdate(t *testing.T) {
	const selector = `spec: Forbidden: updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', 'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden`
	broken := `{spec: {template: {spec: {containers: [{name: main}]}}}}`
	for _, tc := range []struct {
		name         string
		only         string
		old, changed string
		want         []string
	}{
		{name: "all but the selector may change", changed: `{spec: {replicas: 3, lifecycle: {preDelete: {markPodNotReady: true}}, scaleStrategy: {maxUnavailable: 1}, minReadySeconds: 1, progressDeadlineSeconds: 9, revisionHistoryLimit: 1,
			volumeClaimTemplates: [{metadata: {name: data}}], template: {metadata: {labels: {more: "1"}}}}, ROLLING: {paused: true}}`},
		{name: "the selector may not", changed: `{spec: {selector: {matchLabels: {app: web, tier: "1"}}, template: {metadata: {labels: {tier: "1"}}}}}`, want: []string{selector}},
		{name: "a mistake that was there is left alone", old: broken, changed: `{metadata: {annotations: {a: b}}}`},
		{name: "a template that stays is not looked at", old: broken, changed: `{spec: {replicas: 3}}`},
		{name: "a new mistake is reported", changed: broken, want: []string{`spec.template.spec.containers[0].image: Required value`}},
		{name: "a claim that goes takes its mounts along", old: `{spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {containers: [{name: main, image: x, volumeMounts: [{name: data, mountPath: /x}]}]}}}}`,
			changed: `{spec: {volumeClaimTemplates: null}}`, want: []string{`spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"`}},
		{name: "a pod to delete that is gone meanwhile may stay", only: alpha, old: `{spec: {scaleStrategy: {podsToDelete: [web-gone]}}}`, changed: `{spec: {scaleStrategy: {podsToDelete: [web-gone, web-mine, web-away]}}}`, want: []string{`spec.scaleStrategy.podsToDelete[2]: Not found: "web-away"`}},
		{name: "a type that v1beta1 gave may stay", only: alpha, old: `{spec: {updateStrategy: {type: OnDelete}}}`, changed: `{spec: {replicas: 3}}`},
		{name: "it may not come", only: alpha, changed: `{spec: {updateStrategy: {type: OnDelete}}}`, want: []string{`spec.updateStrategy.type: Unsupported value: "OnDelete": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`}},
		{name: "InPlaceOnly takes other images", only: alpha, old: `{ROLLING: {POLICY: InPlaceOnly}}`, changed: `{spec: {template: {metadata: {labels: {more: "1"}}, spec: {containers: [{name: main, image: "nginx:2"}]}}}}`},
		{name: "InPlaceOnly takes nothing else", only: alpha, old: `{ROLLING: {POLICY: InPlaceOnly}}`, changed: `{spec: {template: {spec: {containers: [{name: main, image: "nginx:2", command: [x]}]}}}}`,
			want: []string{`spec.template.spec: Invalid value: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command`}},
		{name: "in v1beta1 the controller tells that", only: beta, old: `{ROLLING: {POLICY: InPlaceOnly}}`, changed: `{spec: {template: {spec: {containers: [{name: main, image: "nginx:2", command: [x]}]}}}}`},
		{name: "a pre-download that an annotation gave may stay", only: beta, old: `{ROLLING: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 10%}}}`, changed: `{spec: {replicas: 3}}`},
		{name: "it may not come into a field", only: beta, old: `{ROLLING: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 10%}}}`, changed: `{ROLLING: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 20%}}}`,
			want: []string{`ROLLING.inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: "20%": must be a number, not a percentage`}},
	} {
		for _, version := range versions() {
			if tc.only != "" && tc.only != version {
				continue
			}
			t.Run(tc.name+" in "+version, func(t *testing.T) {
				before := []string{"{}"}
				if tc.old != "" {
					before = []string{tc.old}
				}
				old := defaulted(t, &Defaulter{}, version, typed(t, version, before...), nil)
				object := defaulted(t, &Defaulter{}, version, typed(t, version, append(before, tc.changed)...), old)
				errs, _ := findingsOf(t, &Validator{Pods: pods{}}, version, object, old)
				compare(t, version, tc.want, errs)
			})
		}
	}
}

// A template made while gate TemplateNoDefaults was on has no defaults; that they come later is no change of the user's.
func TestInPlaceOnlyDoesNotMindDefaults(t *testing.T) {
	only := `{ROLLING: {POLICY: InPlaceOnly}}`
	old := defaulted(t, &Defaulter{KeepTemplates: true}, alpha, typed(t, alpha, only), nil)
	object := defaulted(t, &Defaulter{}, alpha, typed(t, alpha, only, `{spec: {template: {spec: {containers: [{name: main, image: "nginx:2"}]}}}}`), old)
	errs, _ := findingsOf(t, &Validator{Pods: pods{}}, alpha, object, old)
	compare(t, alpha, nil, errs)
}
