module github.com/tickonce/tickonce/bench

go 1.26

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/jedib0t/go-pretty/v6 v6.8.3
	github.com/jonboulle/clockwork v0.5.0
	github.com/netresearch/go-cron v0.9.1
	github.com/reugn/go-quartz v0.15.2
	github.com/robfig/cron/v3 v3.0.1
	github.com/stretchr/testify v1.12.1
	github.com/tickonce/tickonce v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.44.0 // indirect
	golang.org/x/text v0.22.0 // indirect
)

replace github.com/tickonce/tickonce => ../
