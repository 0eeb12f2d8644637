"""Where the shop finds its neighbours."""

WAREHOUSE = "https://warehouse.example.test/v1"
ACCESS_KEY = "@@AWS_ACCESS_KEY@@"
