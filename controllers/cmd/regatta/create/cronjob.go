// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// cronJobNameMaxLength leaves room for the time of a run in the names of jobs, which are labels of pods.
const cronJobNameMaxLength = validation.DNS1123LabelMaxLength - len("-1700000000")

// cronJob has the flags of an AdvancedCronJob.
type cronJob struct {
	*creation
	podFlags
	schedule, timeZone string
	concurrency        kruise.ConcurrencyPolicy
	broadcast          bool
}

func newCronJobCommand() *cobra.Command {
	c := &cronJob{creation: newCreation("advancedcronjobs", "AdvancedCronJob", validateCronJobName)}
	c.build, c.takesCommand = c.buildJob, true
	f := c.flags
	c.addFlags(f,
		"`Never|OnFailure`: whether a container that failed restarts; OnFailure if unset, and Never with --broadcast")
	f.StringVar(&c.schedule, "schedule", "", "`schedule` in cron format, such as \"0 3 * * *\" or @daily")
	f.StringVar(&c.timeZone, "time-zone", "",
		"time `zone` of the schedule, such as Europe/Berlin; the time zone of the manager if unset")
	f.BoolVar(&c.broadcast, "broadcast", false, "run a pod on every node: each run is a BroadcastJob in place of a Job")
	addChoiceFlag(f, &c.concurrency, "concurrency-policy",
		"`Allow|Forbid|Replace`: what happens to a run that is due while another one is active",
		kruise.AllowConcurrent, kruise.ForbidConcurrent, kruise.ReplaceConcurrent)
	return c.completeCommand(&cobra.Command{
		Use:     "cronjob NAME --image IMAGE --schedule SCHEDULE [flags] [-- COMMAND [ARGS...]]",
		Aliases: []string{"advancedcronjob", "acj"},
		Short:   "Run jobs on a schedule",
		Long: `Create an AdvancedCronJob. It creates a Job at each time of the schedule, or a
BroadcastJob with --broadcast. The pods have one container with the name of the
AdvancedCronJob, and COMMAND in place of the entrypoint of the image.`,
		Example: `  # Make a backup every night at 3 o'clock in Berlin
  regatta create cronjob backup --image registry.example.com/backup:1 --schedule "0 3 * * *" --time-zone Europe/Berlin

  # Remove a cache from every node once an hour
  regatta create cronjob clean --image busybox:1.37 --schedule @hourly --broadcast -- rm -rf /tmp/cache`,
	})
}

// validateCronJobName is a ValidateNameFunc.
func validateCronJobName(name string, prefix bool) []string {
	wrong := apivalidation.NameIsDNSLabel(name, prefix)
	if len(wrong) == 0 && len(name) > cronJobNameMaxLength {
		wrong = append(wrong, fmt.Sprintf("it must be no more than %d characters: the names of jobs are longer", cronJobNameMaxLength))
	}
	return wrong
}

func (c *cronJob) buildJob(_ context.Context, meta metav1.ObjectMeta, command []string) (*unstructured.Unstructured, error) {
	if err := c.validateSchedule(); err != nil {
		return nil, err
	}
	spec := kruise.AdvancedCronJobSpec{Schedule: c.schedule, ConcurrencyPolicy: c.concurrency}
	if c.timeZone != "" {
		spec.TimeZone = &c.timeZone
	}
	restart := corev1.RestartPolicyOnFailure
	if c.broadcast {
		restart = corev1.RestartPolicyNever
	}
	c.restart = cmp.Or(c.restart, restart)
	template, err := c.buildTemplate(meta.Name, command)
	if err != nil {
		return nil, err
	}
	if c.broadcast {
		spec.Template.BroadcastJobTemplate = &kruise.BroadcastJobTemplateSpec{Spec: kruise.BroadcastJobSpec{Template: template}}
	} else {
		spec.Template.JobTemplate = &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}
	}
	return encodeObject(&kruise.AdvancedCronJob{TypeMeta: c.typeMeta(), ObjectMeta: meta, Spec: spec})
}

// validateSchedule checks what the CRD checks. Only the manager has the parser of schedules and the time zones.
func (c *cronJob) validateSchedule() error {
	switch {
	case strings.TrimSpace(c.schedule) == "":
		return errors.New(`--schedule is missing: give one such as "0 3 * * *" or @daily`)
	case c.flags.Changed("time-zone") && (c.timeZone == "" || c.timeZone == "Local"):
		return fmt.Errorf("--time-zone is %q: it must be the name of a zone, such as Europe/Berlin", c.timeZone)
	case c.timeZone != "" && strings.Contains(c.schedule, "TZ"):
		return fmt.Errorf("--time-zone and a zone in --schedule exclude each other: --schedule is %q", c.schedule)
	}
	return nil
}
