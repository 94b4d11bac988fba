// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/scale"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"
)

// Commands that specs run often, such as those that they repeat until they show what is expected. They run in this
// process, since half of a spec's processor time went to starting kubectl otherwise.
var inProcess = map[string]func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command{
	"get": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return get.NewCmdGet("kubectl", f, s)
	},
	"describe": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return describe.NewCmdDescribe("kubectl", f, s)
	},
	"apply": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return apply.NewCmdApply("kubectl", f, s)
	},
	"patch": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command { return patch.NewCmdPatch(f, s) },
	"label": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command { return label.NewCmdLabel(f, s) },
	"annotate": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return annotate.NewCmdAnnotate("kubectl", f, s)
	},
	"scale": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command { return scale.NewCmdScale(f, s) },
}

// kubectlFailed is what a command of kubectl ends with in place of ending the process.
type kubectlFailed struct{ message string }

var endNoProcess = sync.OnceFunc(func() {
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(kubectlFailed{message}) })
})

// runsInProcess reports whether runKubectl can run a command, after flags for the namespace. One that watches goes on until its
// process is killed, and one that reads files does so in a folder of its own.
func runsInProcess(args []string) bool {
	for len(args) > 2 && args[0] == "-n" {
		args = args[2:]
	}
	if len(args) == 0 || inProcess[args[0]] == nil {
		return false
	}
	for _, arg := range args {
		if arg == "-w" || strings.HasPrefix(arg, "--watch") || arg == "-f" || strings.HasPrefix(arg, "--filename") || strings.HasPrefix(arg, "--patch-file") {
			return false
		}
	}
	return true
}

// runKubectl runs a command of kubectl in this process, without a standard input, and returns all that it prints.
func runKubectl(kubeconfig string, args ...string) (out string, err error) {
	endNoProcess()
	var printed bytes.Buffer
	defer func() {
		out = printed.String()
		switch failed := recover().(type) {
		case nil:
		case kubectlFailed:
			out, err = out+failed.message+"\n", errors.New("exit status 1")
		default:
			panic(failed)
		}
	}()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Timeout = ptr.To(kubeconfig), ptr.To("2m") // nothing else ends a request when the spec is over
	flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(&printed, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})
	root := &cobra.Command{Use: "kubectl", SilenceErrors: true, SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &printed}
	factory := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
	for _, command := range inProcess {
		root.AddCommand(command(factory, streams))
	}
	root.SetArgs(args)
	root.SetOut(&printed)
	root.SetErr(&printed)
	if err := root.Execute(); err != nil {
		printed.WriteString(err.Error())
		return "", err
	}
	return "", nil
}
