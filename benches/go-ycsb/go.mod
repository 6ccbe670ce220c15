module encore/benches/go-ycsb

go 1.21

require github.com/pingcap/go-ycsb v1.0.1
