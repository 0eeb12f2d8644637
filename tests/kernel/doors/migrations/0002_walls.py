from django.db import migrations

from factory.kernel.migration_operations import JournalRequired, TenantWalls


class Migration(migrations.Migration):
    dependencies = [("doors", "0001_initial"), ("factory", "0002_walls")]
    operations = [
        TenantWalls("Door", scan=("id", "tenant_id", "state", "shut_at")),
        JournalRequired("Door"),
        TenantWalls("Handle"),
    ]
