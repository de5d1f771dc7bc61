// Package sweeps_test checks the manifests and the command lines of
// docs/SWEEPS.md. It is a module of its own, so that the types of Kubernetes
// stay out of the product's go.mod.
package sweeps_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// small is a scenario of which many seeds take no time.
const small = `simulate v1
run 10m
schedule a every=1m queue=q
swarm faults=1 kinds=down
`

// manifest reads the documents of a file, strictly: a field that the API does not
// have, or has with another type, or a name that comes twice, is an error.
func manifest(t *testing.T, file string) (jobs []batch.Job, claims []core.PersistentVolumeClaim) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var kind struct{ Kind string }
		require.NoError(t, yaml.Unmarshal(doc, &kind))
		switch kind.Kind {
		case "Job":
			var job batch.Job
			require.NoError(t, yaml.UnmarshalStrict(doc, &job))
			require.Equal(t, "batch/v1", job.APIVersion)
			jobs = append(jobs, job)
		case "PersistentVolumeClaim":
			var claim core.PersistentVolumeClaim
			require.NoError(t, yaml.UnmarshalStrict(doc, &claim))
			require.Equal(t, "v1", claim.APIVersion)
			claims = append(claims, claim)
		default:
			t.Fatalf("%s: found the kind %q", file, kind.Kind)
		}
	}
	return jobs, claims
}

// TestManifest: what hangs together in it, and what the API server would refuse.
func TestManifest(t *testing.T) {
	jobs, claims := manifest(t, "job.yaml")
	require.Len(t, jobs, 1)
	require.Len(t, claims, 1)
	require.Equal(t, []core.PersistentVolumeAccessMode{core.ReadWriteMany}, claims[0].Spec.AccessModes)
	job := &jobs[0].Spec
	require.Equal(t, batch.IndexedCompletion, *job.CompletionMode)
	require.LessOrEqual(t, *job.Parallelism, *job.Completions)
	require.NotNil(t, job.BackoffLimitPerIndex, "FailIndex needs it")
	pod := &job.Template.Spec
	require.Equal(t, core.RestartPolicyNever, pod.RestartPolicy, "a policy for failed pods needs it")
	require.Len(t, pod.Containers, 1)
	require.Equal(t, []core.EnvVar{{Name: "SHARDS", Value: fmt.Sprint(*job.Completions)}}, pod.Containers[0].Env)

	actions := map[int32]batch.PodFailurePolicyAction{}
	for _, rule := range job.PodFailurePolicy.Rules {
		if on := rule.OnExitCodes; on != nil {
			require.Equal(t, pod.Containers[0].Name, *on.ContainerName)
			require.Equal(t, batch.PodFailurePolicyOnExitCodesOpIn, on.Operator)
			require.True(t, slices.IsSorted(on.Values), "the API wants them in order")
			for _, code := range on.Values {
				actions[code] = rule.Action
			}
		} else {
			require.Equal(t, batch.PodFailurePolicyActionIgnore, rule.Action)
			require.Equal(t, []batch.PodFailurePolicyOnPodConditionsPattern{{Type: core.DisruptionTarget}}, rule.OnPodConditions)
		}
	}
	require.Equal(t, map[int32]batch.PodFailurePolicyAction{
		1: batch.PodFailurePolicyActionFailJob, 2: batch.PodFailurePolicyActionFailIndex, 3: batch.PodFailurePolicyActionFailIndex,
		4: batch.PodFailurePolicyActionFailIndex, 5: batch.PodFailurePolicyActionFailIndex, 6: batch.PodFailurePolicyActionFailIndex,
		7: batch.PodFailurePolicyActionFailIndex,
	}, actions)

	merges, _ := manifest(t, "merge.yaml")
	require.Len(t, merges, 1)
	for _, pod := range []*core.PodSpec{pod, &merges[0].Spec.Template.Spec} {
		claimed := false
		for _, volume := range pod.Volumes {
			if volume.PersistentVolumeClaim != nil {
				require.Equal(t, claims[0].Name, volume.PersistentVolumeClaim.ClaimName)
				claimed = true
			}
		}
		require.True(t, claimed)
		for _, mount := range pod.Containers[0].VolumeMounts {
			require.True(t, slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }), mount.Name)
		}
	}
}

// TestStrictness: a slip of the pen would not get through.
func TestStrictness(t *testing.T) {
	text, err := os.ReadFile("job.yaml")
	require.NoError(t, err)
	job := bytes.Split(text, []byte("\n---\n"))[1]
	require.NoError(t, yaml.UnmarshalStrict(job, new(batch.Job)))
	for was, is := range map[string]string{
		"completionMode:": "completionmod:", "completions: 64": "completions: many",
		"parallelism: 16": "parallelism: 16\n  parallelism: 8", "containerName:": "container:",
	} {
		slip := bytes.Replace(job, []byte(was), []byte(is), 1)
		require.NotEqual(t, job, slip)
		require.Error(t, yaml.UnmarshalStrict(slip, new(batch.Job)), is)
	}
}

// TestManifestRunsEachSeedOnce runs the command of each pod, with the variable
// that Kubernetes sets, and of the merge.
func TestManifestRunsEachSeedOnce(t *testing.T) {
	bench := newBench(t)
	jobs, _ := manifest(t, "job.yaml")
	job := &jobs[0].Spec
	command := bench.local(job.Template.Spec.Containers[0].Command)
	for index := range *job.Completions {
		bench.run(t, command, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index), fmt.Sprintf("SHARDS=%d", *job.Completions))
	}
	merges, _ := manifest(t, "merge.yaml")
	out := bench.run(t, bench.local(merges[0].Spec.Template.Spec.Containers[0].Command))
	require.Contains(t, out, "my.sim: seeds 1..200, from 64 files, swarm")
	require.Contains(t, out, "\nverdict: pass\n")
	require.Contains(t, out, "in 200 runs\n")
	require.FileExists(t, filepath.Join(bench.dir, "whole.json"))
}

// TestParallelCommandRunsEachSeedOnce runs the command lines of docs/SWEEPS.md
// without ssh: parallel's own words are left out, and what it would put in for {}
// is put in here. Where it is installed, it does that itself, too.
func TestParallelCommandRunsEachSeedOnce(t *testing.T) {
	text, err := os.ReadFile("../../docs/SWEEPS.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^parallel (.*?) (\./simulate .*) ::: \$\(seq (\d+)\) >shards.txt\n(.*)$`).FindStringSubmatch(string(text))
	require.NotNil(t, line)
	options, command, merge := line[1], line[2], line[4]
	require.Equal(t, "64", line[3])
	require.Contains(t, command, "--shard {}/64 ")
	require.Contains(t, command, " --state shard-{}.json")
	require.Contains(t, options, "--return shard-{}.json ", "what is kept there is to come back")

	t.Run("by hand", func(t *testing.T) {
		bench := newBench(t)
		for i := range 64 {
			bench.run(t, bench.local([]string{"sh", "-c", strings.ReplaceAll(command, "{}", fmt.Sprint(i+1))}))
		}
		require.Contains(t, bench.run(t, []string{"sh", "-c", merge}), "my.sim: seeds 1..200, from 64 files, swarm")
	})
	t.Run("by parallel", func(t *testing.T) {
		if out, err := exec.Command("parallel", "--version").CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("GNU parallel")) {
			t.Skip("GNU parallel is not installed: its command line is run by hand above")
		}
		bench := newBench(t)
		here := strings.ReplaceAll(line[0], "--sshloginfile hosts", "--sshlogin :")
		require.NotEqual(t, line[0], here)
		bench.run(t, bench.local([]string{"sh", "-c", here}))
		require.Contains(t, bench.run(t, []string{"sh", "-c", merge}), "my.sim: seeds 1..200, from 64 files, swarm")
	})
}

// bench is a folder with the program and a scenario.
type bench struct{ dir string }

func newBench(t *testing.T) *bench {
	b := &bench{t.TempDir()}
	build := exec.Command("go", "build", "-o", filepath.Join(b.dir, "simulate"), "./cmd/simulate")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "my.sim"), []byte(small), 0o666))
	return b
}

// local is the command for the folder, and of few seeds.
func (b *bench) local(command []string) []string {
	command = slices.Clone(command)
	for i := range command {
		command[i] = strings.NewReplacer("/scenario/", "./", "/results/", "./", "1..1000000", "1..200").Replace(command[i])
	}
	return command
}

func (b *bench) run(t *testing.T, command []string, env ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+b.dir+string(os.PathListSeparator)+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}
