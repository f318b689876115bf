module github.com/terrace-iac/terrace

go 1.26
