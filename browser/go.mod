module github.com/tickonce/tickonce/browser

go 1.26

replace github.com/tickonce/tickonce => ../

require (
	github.com/chromedp/cdproto v0.160.1
	github.com/chromedp/chromedp v0.23.1
	github.com/stretchr/testify v1.12.1
	github.com/tickonce/tickonce v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.44.0
)

require (
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
