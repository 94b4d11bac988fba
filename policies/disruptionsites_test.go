// SPDX-License-Identifier: Apache-2.0

package policies

// Rows of README.md.
const (
	endedJobs         = unasked + "Jobs, schedules' runs and requests of jobs that have ended, by the time or the number that their spec keeps"
	ownRecords        = unasked + "Records of our own: NodeImages, NodePodProbes, revisions, webhook configurations, records and requests that are not needed any more"
	ofWhatIsGone      = unasked + "Volume claims of a pod that was deleted, and copies of objects whose original or target is gone, or of another type"
	childrenOfSubsets = unasked + "Children of a UnitedDeployment whose subset the user took out, or has another child; and a template of a CloneSet or an Advanced StatefulSet, whose controller asks"
)

// disruptions are the functions that disrupt, with the points that are asked first.
var disruptions = map[string]string{
	"controllers/advancedcronjob/step.go delete":                    endedJobs,
	"controllers/broadcastjob/pods.go delete":                       endedJobs,
	"controllers/broadcastjob/step.go expire":                       endedJobs,
	"controllers/cloneset/claims.go deleteClaim":                    ofWhatIsGone,
	"controllers/containerrecreaterequest/readiness.go release":     endedJobs,
	"controllers/ephemeraljob/step.go expire":                       endedJobs,
	"controllers/imagelistpulljob/controller.go expire":             endedJobs,
	"controllers/imagelistpulljob/sync.go sync":                     endedJobs,
	"controllers/imagepulljob/reconcile.go release":                 endedJobs,
	"controllers/imagepulljob/secrets.go dropCopy":                  ofWhatIsGone,
	"controllers/imagepulljob/secrets.go releaseSecrets":            ofWhatIsGone,
	"controllers/imagepulljob/secrets.go writeCopy":                 ofWhatIsGone,
	"controllers/launchpriority/controller.go open":                 "launchpriority/order",
	"controllers/livenessprobe/restart.go takeBack":                 ownRecords,
	"controllers/workload/restartrequest/restartrequest.go Replace": ownRecords,
	"controllers/nodeimage/controller.go Reconcile":                 ownRecords,
	"controllers/nodepodprobe/controller.go Reconcile":              ownRecords,
	"controllers/persistentpodstate/generate.go Reconcile":          ownRecords,
	"controllers/policybundle/bundlerevision/store.go Prune":        ownRecords,
	"controllers/policybundle/bundlerevision/store.go replace":      ownRecords,
	"controllers/resourcedistribution/copies.go one":                "placement/distribution",
	"controllers/resourcedistribution/copies.go remove":             "placement/distribution",
	"controllers/resourcedistribution/copies.go replaceCopy":        "placement/distribution",
	"controllers/sidecarset/lacking.go repair":                      "rollout/plan, rollout/rank",
	"controllers/uniteddeployment/act.go deleteAll":                 childrenOfSubsets,
	"controllers/uniteddeployment/act.go unstick":                   "rollout/plan, rollout/rank",
	"controllers/uniteddeployment/act.go update":                    "rollout/plan, rollout/rank",
	"controllers/uniteddeployment/holds.go scaleChild":              "placement/allocation",
	"controllers/webhook/pod/spreads/spreads.go NewRecords":         ownRecords,
	"controllers/webhookconfig/apply.go remove":                     ownRecords,
	"controllers/workload/inplace/resize.go patchResize":            "rollout/plan, rollout/rank, rollout/change",
	"controllers/workload/predownload/predownload.go remove":        ownRecords,
	"controllers/workload/revision/history.go Truncate":             ownRecords,
	"controllers/workload/rollout/pods.go deleteObject":             "rollout/plan, rollout/rank, rollout/scale",
	"controllers/workload/rollout/restart.go restarted":             ownRecords,
	"controllers/workloadspread/step.go evict":                      "rollout/plan, rollout/rank",
}
