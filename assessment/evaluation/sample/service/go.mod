module example.test/counter

go 1.22

require (
	example.test/scales v1.4.0
	example.test/till v0.9.2 // indirect
)
