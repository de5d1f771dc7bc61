package main

import "time"

// task is an entry of a crontab and what becomes of it here.
type task struct {
	name string
	cron string

	spec   string    // "": cron's text is a spec here too
	anchor time.Time // the zero time: the grid begins at the registration
	yearly bool      // no spec: see scheduleYearly
}

// midnight is an instant, in UTC; cron's is that of the process's zone.
var midnight = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// tasks are the maintenance tasks of a git forge.
var tasks = []task{
	{name: "update_mirrors", cron: "@every 10m"},
	{name: "repo_health_check", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "check_repo_stats", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "archive_cleanup", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "sync_external_users", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "deleted_branches_cleanup", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "cleanup_hook_task_table", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "cleanup_packages", cron: "@midnight", spec: "@every 1d", anchor: midnight},
	{name: "git_gc_repos", cron: "@every 72h"},
	{name: "resync_all_sshkeys", cron: "@every 72h"},
	{name: "resync_all_hooks", cron: "@every 72h"},
	{name: "reinit_missing_repos", cron: "@every 72h"},
	{name: "delete_missing_repos", cron: "@every 72h"},
	{name: "delete_generated_repository_avatars", cron: "@every 72h"},
	{name: "delete_old_actions", cron: "@every 168h"},
	{name: "update_checker", cron: "@every 168h"},
	{name: "delete_old_system_notices", cron: "@every 168h"},
	{name: "gc_lfs", cron: "@every 24h"},
	{name: "delete_inactive_accounts", cron: "@annually", yearly: true},
	{name: "delete_repo_archives", cron: "@annually", yearly: true},
}

// otherSpecs are texts that other crontabs have.
var otherSpecs = []string{
	"@every 360s", "@every 1440m",
	"@every 1h30m", "@every 1h30m10s", "@every 00h00m10s", "@every 0.5s",
	"@hourly", "@daily", "@midnight", "@annually", "@reboot", "@once",
	"*/5 * * * *", "0 30 * * * *",
}
