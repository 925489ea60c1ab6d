module hqueue-client

go 1.26

require github.com/apache/thrift v0.25.0
